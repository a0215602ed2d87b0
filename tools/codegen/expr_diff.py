"""Symbolic derivatives: plain, reverse (gradients) and forward (tangents).

Note [Complex gradients]
The gradient of a real loss by z = x + iy is kept as dL/dx + i dL/dy, PyTorch's
convention. For w = f(z) with gradient g that is

    g * conj(df/dz) + conj(g) * df/dconj(z)

(Wirtinger derivatives; Kreutz-Delgado, "The Complex Gradient Operator", 2009). A
holomorphic f has only the first term. For a real-valued f both terms are equal when g
is real, and a complex gradient that reaches a real value keeps its real part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .errors import CodegenError
from .expr_ast import (
    ONE,
    ZERO,
    Binary,
    Call,
    Cast,
    Cond,
    Expr,
    Literal,
    Name,
    Unary,
    map_children,
    names,
    replace,
    substitute,
)
from .expr_functions import FUNCTIONS
from .expr_parse import parse
from .expr_simplify import add, cond, conj, div, mul, neg, simplify, sub
from .expr_types import argument_kind, check, rank

_ARGUMENTS = ("a", "b", "c")


@cache
def _parsed(text: str) -> Expr:
    return parse(text, _ARGUMENTS)


@dataclass(frozen=True)
class _Context:
    """Kinds of the variables, and whether conjugates are taken (gradients)."""

    env: Mapping[str, str]
    conjugate: bool = True

    def kind(self, expr: Expr) -> str:
        return check(expr, self.env, self.compute)

    @property
    def compute(self) -> str:
        return max(self.env.values(), key=rank, default="float")

    def conj(self, expr: Expr) -> Expr:
        if self.conjugate and self.kind(expr) == "complex":
            return conj(expr)
        return expr

    def fit(self, gradient: Expr, target: Expr) -> Expr:
        """A complex gradient of a real value is its real part."""
        if (
            self.conjugate
            and self.kind(target) != "complex"
            and self.kind(gradient) == "complex"
        ):
            return Call("real", (gradient,))
        return gradient

    def partials(self, call: Call, index: int) -> tuple[Expr, Expr]:
        """Derivatives by an argument and by its conjugate, arguments put in."""
        function = FUNCTIONS[call.function]
        kinds = [self.kind(arg) for arg in call.args]
        is_complex = argument_kind(call, kinds) == "complex"
        values = dict(zip(_ARGUMENTS, call.args, strict=False))

        def put(text: str | None) -> Expr:
            if text is None:
                return ZERO
            return self.drop_conj(simplify(substitute(_parsed(text), values)))

        direct = put(function.partial(index, is_complex))
        by_conj = put(function.conj_partial(index) if is_complex else None)
        return direct, by_conj

    def drop_conj(self, expr: Expr) -> Expr:
        """conj and real of real parts are the parts themselves."""
        expr = map_children(expr, self.drop_conj)
        if isinstance(expr, Call) and expr.function in ("conj", "real"):
            if self.kind(expr.args[0]) != "complex":
                return expr.args[0]
        return expr


def _product(factor: Expr, partial: Expr) -> Expr:
    """factor * partial, inside the branches of a piecewise partial."""
    if isinstance(partial, Cond):
        then, other = _product(factor, partial.then), _product(factor, partial.other)
        return cond(partial.test, then, other)
    # g * (-x) and g * (c / x) read and run better as -(g * x) and (g * c) / x.
    return mul(factor, partial)


def _pull(node: Expr, gradient: Expr, var: str, ctx: _Context) -> Expr:
    """What `node` contributes to the gradient of `var`, given its own gradient."""
    if var not in names(node) or rank(ctx.kind(node)) < rank("float"):
        return ZERO
    gradient = ctx.fit(gradient, node)
    match node:
        case Name():
            return gradient
        case Cast():
            return _pull(node.operand, gradient, var, ctx)
        case Unary(op="-"):
            return neg(_pull(node.operand, gradient, var, ctx))
        case Cond():
            then = _pull(node.then, gradient, var, ctx)
            return cond(node.test, then, _pull(node.other, gradient, var, ctx))
        case Binary():
            left, right = _binary_gradients(node, gradient, ctx)
            total = _pull(node.left, left, var, ctx)
            if node.op == "-":
                return sub(total, _pull(node.right, gradient, var, ctx))
            return add(total, _pull(node.right, right, var, ctx))
        case Call():
            total = ZERO
            for i, arg in enumerate(node.args):
                if var in names(arg):
                    inner = _call_gradient(node, i, gradient, ctx)
                    total = add(total, _pull(arg, inner, var, ctx))
            return total
    raise CodegenError(f"no derivative of {type(node).__name__}")


def _binary_gradients(node: Binary, gradient: Expr, ctx: _Context) -> tuple[Expr, Expr]:
    left, right = node.left, node.right
    match node.op:
        case "+" | "-":
            return gradient, gradient
        case "*":
            by_left = _product(gradient, ctx.conj(right))
            return by_left, _product(gradient, ctx.conj(left))
        case "/":
            by_right = neg(mul(gradient, ctx.conj(div(div(left, right), right))))
            return div(gradient, ctx.conj(right)), by_right
    raise CodegenError(f"no derivative of {node.op}")


def _call_gradient(call: Call, index: int, gradient: Expr, ctx: _Context) -> Expr:
    direct, by_conj = ctx.partials(call, index)
    if by_conj == ZERO:
        return _distribute_conj(gradient, direct, ctx)
    if not ctx.conjugate:
        raise CodegenError(f"{call.function} is not holomorphic")
    if ctx.kind(call) != "complex":
        return _product(gradient, _doubled(by_conj))
    second = _product(ctx.conj(gradient), by_conj)
    return add(_distribute_conj(gradient, direct, ctx), second)


def _distribute_conj(gradient: Expr, partial: Expr, ctx: _Context) -> Expr:
    if isinstance(partial, Cond):
        then = _distribute_conj(gradient, partial.then, ctx)
        return cond(partial.test, then, _distribute_conj(gradient, partial.other, ctx))
    return _product(gradient, ctx.conj(partial))


def _doubled(expr: Expr) -> Expr:
    if isinstance(expr, Cond):
        return cond(expr.test, _doubled(expr.then), _doubled(expr.other))
    if isinstance(expr, Binary) and expr.op == "/":
        return div(mul(Literal(2), expr.left), expr.right)
    return mul(Literal(2), expr)


def _environment(
    expr: Expr, is_complex: bool, env: Mapping[str, str] | None
) -> dict[str, str]:
    kind = "complex" if is_complex else "float"
    return dict.fromkeys(names(expr), kind) | dict(env or {})


def diff(expr: Expr, var: str, env: Mapping[str, str] | None = None) -> Expr:
    """d expr / d var for real variables, or the holomorphic f'(z) for complex ones."""
    ctx = _Context(_environment(expr, False, env), conjugate=False)
    return simplify(_pull(simplify(expr), ONE, var, ctx))


def backward_expr(
    expr: Expr,
    var: str,
    is_complex: bool = False,
    *,
    grad: str = "grad",
    result: str | None = "result",
    env: Mapping[str, str] | None = None,
) -> Expr:
    """The gradient of `var` in terms of `grad`; see Note [Complex gradients].

    Where the gradient contains `expr` itself, it becomes the variable `result`.
    Kinds of variables are float, or complex if `is_complex`, unless `env` gives them.
    """
    kinds = _environment(expr, is_complex, env)
    expr = simplify(expr)
    kinds[grad] = check(expr, kinds, "complex" if is_complex else "float")
    found = simplify(_pull(expr, Name(grad), var, _Context(kinds)))
    reusable = result is not None and expr.children
    return replace(found, expr, result) if reusable else found


def forward_expr(
    expr: Expr,
    tangents: Mapping[str, str],
    is_complex: bool = False,
    *,
    result: str | None = "result",
    env: Mapping[str, str] | None = None,
) -> Expr:
    """The tangent of `expr`, given the names of its variables' tangents."""
    kinds = _environment(expr, is_complex, env)
    expr = simplify(expr)
    for var, tangent in tangents.items():
        kinds[tangent] = kinds.get(var, "complex" if is_complex else "float")
    found = simplify(_push(expr, tangents, _Context(kinds)))
    reusable = result is not None and expr.children
    return replace(found, expr, result) if reusable else found


def _push(node: Expr, tangents: Mapping[str, str], ctx: _Context) -> Expr:
    if rank(ctx.kind(node)) < rank("float"):
        return ZERO
    match node:
        case Name():
            return Name(tangents[node.name]) if node.name in tangents else ZERO
        case Cast():
            return _push(node.operand, tangents, ctx)
        case Unary():
            return neg(_push(node.operand, tangents, ctx))
        case Cond():
            then = _push(node.then, tangents, ctx)
            return cond(node.test, then, _push(node.other, tangents, ctx))
        case Binary():
            return _push_binary(node, tangents, ctx)
        case Call():
            total = ZERO
            for i, arg in enumerate(node.args):
                tangent = _push(arg, tangents, ctx)
                if tangent != ZERO:
                    total = add(total, _call_tangent(node, i, tangent, ctx))
            return total
    return ZERO


def _push_binary(node: Binary, tangents: Mapping[str, str], ctx: _Context) -> Expr:
    left, right = node.left, node.right
    by_left, by_right = _push(left, tangents, ctx), _push(right, tangents, ctx)
    match node.op:
        case "+":
            return add(by_left, by_right)
        case "-":
            return sub(by_left, by_right)
        case "*":
            return add(_product(by_left, right), _product(by_right, left))
        case "/":
            quotient = div(div(left, right), right)
            return sub(div(by_left, right), mul(by_right, quotient))
    return ZERO


def _call_tangent(call: Call, index: int, tangent: Expr, ctx: _Context) -> Expr:
    direct, by_conj = ctx.partials(call, index)
    if by_conj == ZERO:
        return _product(tangent, direct)
    if ctx.kind(call) != "complex":
        return Call("real", (_product(tangent, _doubled(direct)),))
    second = _product(conj(tangent), by_conj)
    return add(_product(tangent, direct), second)
