"""Algebraic constructors that fold constants, zeros, ones and double signs.

They assume finite values (0 * x is 0), as derivatives are written; a record's forward
expression is never passed through them before it is printed.
"""

from __future__ import annotations

from .expr_ast import (
    ONE,
    ZERO,
    Binary,
    Call,
    Cond,
    Expr,
    Literal,
    Logic,
    Unary,
    map_children,
)


def is_number(expr: Expr, value: complex) -> bool:
    return isinstance(expr, Literal) and expr.kind != "bool" and expr.value == value


def _numeric(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.kind != "bool"


def neg(a: Expr) -> Expr:
    if isinstance(a, Literal) and _numeric(a):
        return Literal(-a.value)
    if isinstance(a, Unary) and a.op == "-":
        return a.operand
    return Unary("-", a)


def _negated(a: Expr) -> Expr | None:
    return a.operand if isinstance(a, Unary) and a.op == "-" else None


def add(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0):
        return b
    if is_number(b, 0):
        return a
    if isinstance(a, Literal) and isinstance(b, Literal) and _numeric(a):
        return Literal(a.value + b.value)
    if a == b:
        return mul(Literal(2), a)
    if isinstance(a, Cond) and isinstance(b, Cond) and a.test == b.test:
        return cond(a.test, add(a.then, b.then), add(a.other, b.other))
    minus = _negated(b)
    return Binary("-", a, minus) if minus is not None else Binary("+", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    if is_number(b, 0):
        return a
    if is_number(a, 0):
        return neg(b)
    if isinstance(a, Literal) and isinstance(b, Literal) and _numeric(a):
        return Literal(a.value - b.value)
    minus = _negated(b)
    return add(a, minus) if minus is not None else Binary("-", a, b)


def _is_product_with_literal(a: Expr) -> bool:
    return isinstance(a, Binary) and a.op == "*" and _numeric(a.left)


def mul(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0) or is_number(b, 0):
        return ZERO
    if is_number(a, 1):
        return b
    if is_number(b, 1):
        return a
    if isinstance(a, Literal) and isinstance(b, Literal) and _numeric(a):
        return Literal(a.value * b.value)
    for x, y, flip in ((a, b, False), (b, a, True)):
        if is_number(x, -1):
            return neg(y)
        minus = _negated(x)
        if minus is not None:
            return neg(mul(y, minus) if flip else mul(minus, y))
    if _numeric(a) and _is_product_with_literal(b):
        assert isinstance(b, Binary)
        return mul(mul(a, b.left), b.right)
    if isinstance(b, Binary) and b.op == "/" and _numeric(b.left):
        return div(mul(a, b.left), b.right)
    return Binary("*", a, b)


def div(a: Expr, b: Expr) -> Expr:
    if is_number(a, 0):
        return ZERO
    if is_number(b, 1):
        return a
    if isinstance(a, Literal) and isinstance(b, Literal) and _numeric(b) and b.value:
        return Literal(a.value / b.value)
    minus = _negated(a)
    if minus is not None:
        return neg(div(minus, b))
    minus = _negated(b)
    if minus is not None:
        return neg(div(a, minus))
    return Binary("/", a, b)


def power(a: Expr, b: Expr) -> Expr:
    if is_number(b, 0):
        return ONE
    if is_number(b, 1):
        return a
    if is_number(b, -1):
        return div(ONE, a)
    return Call("pow", (a, b))


def cond(test: Expr, then: Expr, other: Expr) -> Expr:
    if isinstance(test, Literal):
        return then if test.value else other
    return then if then == other else Cond(test, then, other)


def conj(a: Expr) -> Expr:
    """The conjugate of what may be complex; real literals pass."""
    if isinstance(a, Literal):
        return Literal(a.value.conjugate()) if a.kind == "complex" else a
    if isinstance(a, Call) and a.function == "conj":
        return a.args[0]
    if isinstance(a, Unary) and a.op == "-":
        return neg(conj(a.operand))
    return Call("conj", (a,))


def truth(expr: Expr) -> Expr:
    """`and`, `or`, `not` and comparisons of literals folded."""
    if isinstance(expr, Logic):
        for x, y in ((expr.left, expr.right), (expr.right, expr.left)):
            if isinstance(x, Literal):
                decided = bool(x.value) == (expr.op == "or")
                return Literal(bool(x.value)) if decided else y
    if isinstance(expr, Unary) and isinstance(expr.operand, Literal):
        return Literal(not expr.operand.value)
    return expr


_COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compare(expr: Expr) -> Expr:
    left, right = expr.children
    if isinstance(left, Literal) and isinstance(right, Literal):
        if "complex" not in (left.kind, right.kind):
            return Literal(_COMPARE[expr.op](left.value, right.value))
    return expr


_BINARY = {"+": add, "-": sub, "*": mul, "/": div}


def simplify(expr: Expr) -> Expr:
    """The expression rebuilt bottom-up with the constructors above."""
    expr = map_children(expr, simplify)
    match type(expr).__name__:
        case "Binary" if expr.op in _BINARY:
            return _BINARY[expr.op](*expr.children)
        case "Unary" if expr.op == "-":
            return neg(expr.operand)
        case "Unary" if expr.op == "not":
            return truth(expr)
        case "Logic":
            return truth(expr)
        case "Compare":
            return _compare(expr)
        case "Cond":
            return cond(*expr.children)
        case "Call" if expr.function == "pow":
            return power(*expr.args)
        case "Call" if expr.function == "conj":
            return conj(expr.args[0])
    return expr
