"""Expressions as text: in the language itself, and as NumPy code for debugging."""

from __future__ import annotations

from .errors import CodegenError
from .expr_ast import (
    SAME,
    Access,
    Binary,
    Call,
    Cast,
    Compare,
    Cond,
    Constant,
    Expr,
    Literal,
    Logic,
    Name,
    Unary,
)
from .expr_functions import FUNCTIONS

# Python's precedences, lowest first.
_TERNARY, _OR, _AND, _NOT, _COMPARE = range(5)
_BITWISE = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8}
_ARITHMETIC = {"+": 9, "-": 9, "*": 10, "/": 10}
_UNARY, _POWER, _ATOM = 11, 12, 13


def to_text(expr: Expr) -> str:
    """The expression in its own syntax; parsing it again gives an equal tree."""
    return _text(expr, _TERNARY)


def _text(expr: Expr, outer: int) -> str:
    text, level = _text_and_level(expr)
    return f"({text})" if level < outer else text


def _text_and_level(expr: Expr) -> tuple[str, int]:
    match expr:
        case Literal():
            text = repr(expr.value).strip("()")
            return text, _ATOM if text[0] != "-" and "+" not in text else _UNARY
        case Constant() | Name():
            return expr.name, _ATOM
        case Unary(op="not"):
            return f"not {_text(expr.operand, _NOT)}", _NOT
        case Unary():
            # A literal in parentheses, lest it be read as a negative literal.
            inner = _text(expr.operand, _UNARY)
            if isinstance(expr.operand, Literal):
                inner = f"({inner})"
            return f"{expr.op}{inner}", _UNARY
        case Binary():
            level = (_BITWISE | _ARITHMETIC)[expr.op]
            left, right = _text(expr.left, level), _text(expr.right, level + 1)
            return f"{left} {expr.op} {right}", level
        case Compare():
            left = _text(expr.left, _COMPARE + 1)
            return f"{left} {expr.op} {_text(expr.right, _COMPARE + 1)}", _COMPARE
        case Logic():
            level = _AND if expr.op == "and" else _OR
            left, right = _text(expr.left, level), _text(expr.right, level + 1)
            return f"{left} {expr.op} {right}", level
        case Cond():
            then, test = _text(expr.then, _OR), _text(expr.test, _OR)
            return f"{then} if {test} else {_text(expr.other, _TERNARY)}", _TERNARY
        case Call(function="pow"):
            base, exponent = expr.args
            return f"{_text(base, _ATOM)} ** {_text(exponent, _UNARY)}", _POWER
        case Call():
            inner = ", ".join(_text(arg, _TERNARY) for arg in expr.args)
            return f"{expr.function}({inner})", _ATOM
        case Cast():
            name = "cast" if expr.kind == "T" else expr.kind
            return f"{name}({_text(expr.operand, _TERNARY)})", _ATOM
        case Access():
            return _access(expr)
    raise CodegenError(f"cannot print {expr!r}")


def _access(expr: Access) -> tuple[str, int]:
    first, *rest = expr.args
    if expr.op == "missing":
        return f"{_text(first, _COMPARE + 1)} is None", _COMPARE
    if expr.op == "names":
        return f"{_text(rest[0], _COMPARE + 1)} in {_text(first, _ATOM)}", _COMPARE
    if expr.op in ("read", "inside", "entry"):
        inner = _text(rest[0], _TERNARY)
        if expr.op != "entry":
            inner = "..." if rest[0] == SAME else f"axis: {inner}"
        text = f"{_text(first, _ATOM)}[{inner}]"
        return f"inside({text})" if expr.op == "inside" else text, _ATOM
    inner = ", ".join(_text(arg, _TERNARY) for arg in expr.args)
    return f"{expr.op}({inner})", _ATOM


_NUMPY_CONSTANTS = {
    "pi": "np.pi",
    "e": "np.e",
    "inf": "np.inf",
    "nan": "np.nan",
    "lowest": "np.finfo(float).min",
    "highest": "np.finfo(float).max",
    "epsilon": "np.finfo(float).eps",
}
_NUMPY_CASTS = {
    "bool": "({} != 0)",
    "int": "np.trunc({})",
    "float": "({} * 1.0)",
    "complex": "({} * (1 + 0j))",
    "T": "({} * 1.0)",
}


def to_numpy(expr: Expr) -> str:
    """Python text over `np` (numpy) and `special` (scipy.special)."""
    args = [to_numpy(child) for child in expr.children]
    match expr:
        case Literal():
            return f"({expr.value!r})"
        case Constant():
            return _NUMPY_CONSTANTS[expr.name]
        case Name():
            return expr.name
        case Unary(op="not"):
            return f"np.logical_not({args[0]})"
        case Unary():
            return f"({expr.op}{args[0]})"
        case Binary() | Compare():
            return f"({args[0]} {expr.op} {args[1]})"
        case Logic():
            return f"np.logical_{expr.op}({args[0]}, {args[1]})"
        case Cond():
            return f"np.where({', '.join(args)})"
        case Cast():
            return _NUMPY_CASTS[expr.kind].format(args[0])
        case Call():
            return FUNCTIONS[expr.function].numpy.format(*args)
    raise CodegenError(f"cannot print {expr!r}")
