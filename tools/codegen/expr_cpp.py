"""Expressions as scalar C++ over `taeda::math`, for one kind of compute type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import CodegenError
from .expr_ast import (
    ONE,
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
    map_children,
    names,
    replace,
    walk,
)
from .expr_functions import CONSTANTS, FUNCTIONS
from .expr_types import argument_kind, check, rank, widest

_CPP_CONSTANTS = {
    "inf": "kInfinity",
    "nan": "kNan",
    "lowest": "kLowest",
    "highest": "kHighest",
    "epsilon": "kEpsilon",
}
# On integers these are the identity, or decided.
INTEGER_IDENTITY = ("floor", "ceil", "trunc", "round", "conj", "real")
INTEGER_DECIDED = {"is_nan": "false", "is_inf": "false", "is_finite": "true"}


def expand_powers(expr: Expr, compute: str) -> Expr:
    """Powers with small literal exponents as products, roots and quotients."""
    expr = map_children(expr, lambda child: expand_powers(child, compute))
    if not (isinstance(expr, Call) and expr.function == "pow"):
        return expr
    base, exponent = expr.args
    if not isinstance(exponent, Literal):
        return expr
    value = exponent.value
    if value in (0.5, -0.5):
        return Call("sqrt" if value == 0.5 else "rsqrt", (base,))
    negative = compute in ("float", "complex")
    if value not in ((-2, -1, 2, 3, 4) if negative else (2, 3, 4)):
        return expr
    if value == 4:
        square = Binary("*", base, base)
        return Binary("*", square, square)
    product = base
    for _ in range(int(abs(value)) - 1):
        product = Binary("*", product, base)
    return product if value > 0 else Binary("/", ONE, product)


@dataclass(frozen=True)
class CppPrinter:
    """Of scalar expressions. `compute` is the kind of T; `real` and `integer` name the
    other C++ types."""

    compute: str
    env: Mapping[str, str]
    t: str = "T"
    real: str = "RealOf<T>"
    integer: str = "int64_t"
    math: str = "math::"

    def kind(self, expr: Expr) -> str:
        return check(expr, self.env, self.compute)

    def ctype(self, kind: str, expr: Expr) -> str:
        if kind == self.compute:
            return self.t
        if kind == "bool":
            return "bool"
        if kind == "int":
            return self.integer
        if kind == "float" and self.compute == "complex":
            return self.real
        column = expr.column if expr.column >= 0 else None
        raise CodegenError(f"a {kind} value in {self.compute} compute", column=column)

    def to(self, expr: Expr, kind: str) -> str:
        """The expression converted to `kind`."""
        if isinstance(expr, Literal):
            return self.literal(expr, kind)
        own, text = self.kind(expr), self.emit(expr)
        if own == kind:
            return text
        if kind == "bool":
            return f"({text} != {self.ctype(own, expr)}(0))"
        return f"{self.ctype(kind, expr)}({text})"

    def literal(self, expr: Literal, kind: str) -> str:
        value = expr.value
        if kind == "bool":
            return "true" if value else "false"
        name = self.ctype(kind, expr)
        if isinstance(value, complex):
            return f"{name}({self.real}({value.real!r}), {self.real}({value.imag!r}))"
        return f"{name}({int(value) if isinstance(value, bool) else repr(value)})"

    def emit(self, expr: Expr) -> str:
        match expr:
            case Literal():
                return self.literal(expr, expr.kind)
            case Constant():
                return self.constant(expr)
            case Name():
                return expr.name
            case Unary():
                return self.unary(expr)
            case Binary():
                return self.binary(expr)
            case Compare():
                kind = widest(self.kind(expr.left), self.kind(expr.right))
                left, right = self.to(expr.left, kind), self.to(expr.right, kind)
                return f"({left} {expr.op} {right})"
            case Logic():
                # Not && and ||: they are branches, and branches stop vectorisation.
                op = "&" if expr.op == "and" else "|"
                left, right = self.to(expr.left, "bool"), self.to(expr.right, "bool")
                return f"({left} {op} {right})"
            case Cond():
                kind = self.kind(expr)
                then, other = self.to(expr.then, kind), self.to(expr.other, kind)
                return f"({self.to(expr.test, 'bool')} ? {then} : {other})"
            case Cast():
                kind = self.compute if expr.kind == "T" else expr.kind
                return self.to(expr.operand, kind)
            case Call():
                return self.call(expr)
        raise CodegenError(f"cannot print {expr!r}")

    def constant(self, expr: Constant) -> str:
        name = self.ctype(self.kind(expr), expr)
        if expr.name in _CPP_CONSTANTS:
            return f"{self.math}{_CPP_CONSTANTS[expr.name]}<{name}>"
        return f"{name}({CONSTANTS[expr.name]!r})"

    def unary(self, expr: Unary) -> str:
        kind = self.kind(expr)
        if expr.op == "not" or (expr.op == "~" and kind == "bool"):
            return f"(!{self.to(expr.operand, 'bool')})"
        return self.narrow(f"({expr.op}{self.to(expr.operand, kind)})", kind, expr)

    def binary(self, expr: Binary) -> str:
        kind = self.kind(expr)
        left, right = self.to(expr.left, kind), self.to(expr.right, kind)
        if expr.op in ("<<", ">>"):
            name = "shift_left" if expr.op == "<<" else "shift_right"
            return f"{self.math}{name}({left}, {right})"
        return self.narrow(f"({left} {expr.op} {right})", kind, expr)

    def narrow(self, text: str, kind: str, expr: Expr) -> str:
        """C++ computes small integers in int; the result wraps as T does."""
        if kind != "int" or self.compute != "int":
            return text
        return f"{self.ctype(kind, expr)}{text}"

    def call(self, expr: Call) -> str:
        kinds = [self.kind(arg) for arg in expr.args]
        kind = argument_kind(expr, kinds)
        args = [self.to(arg, kind) for arg in expr.args]
        name = expr.function
        if rank(kind) <= rank("int"):
            if name in INTEGER_DECIDED:
                return INTEGER_DECIDED[name]
            if name in INTEGER_IDENTITY:
                return args[0]
        if kind != "complex" and name in ("conj", "real"):
            return args[0]
        if kind != "complex" and name == "imag":
            return f"{self.ctype(kind, expr)}(0)"
        template = FUNCTIONS[name].cpp
        if template is not None:
            return template.format(*args, t=self.ctype(kind, expr), math=self.math)
        return f"{self.math}{name}({', '.join(args)})"


def cpp(
    expr: Expr,
    compute: str,
    env: Mapping[str, str] | None = None,
    want: str | None = None,
    **types: str,
) -> str:
    """One C++ expression. Variables have kind `compute` unless `env` says otherwise.

    `want` converts the result to a kind. `types` overrides the names `t` (T), `real`
    (RealOf<T>, for a complex T), `integer` (int64_t) and the prefix `math`.
    """
    expr = expand_powers(expr, compute)
    printer = CppPrinter(compute, _kinds([expr], compute, env), **types)
    return printer.to(expr, want or printer.kind(expr))


def cpp_block(
    expr: Expr,
    compute: str,
    env: Mapping[str, str] | None = None,
    want: str | None = None,
    **types: str,
) -> tuple[list[str], str]:
    """As `cpp`, with repeated parts named first: statements and the expression."""
    lines, results = cpp_blocks({"": expr}, compute, env, want, **types)
    return lines, results[""]


def cpp_blocks(
    outputs: Mapping[str, Expr],
    compute: str,
    env: Mapping[str, str] | None = None,
    want: str | None = None,
    **types: str,
) -> tuple[list[str], dict[str, str]]:
    """Several results that share their repeated parts."""
    results = {name: expand_powers(expr, compute) for name, expr in outputs.items()}
    kinds = _kinds(results.values(), compute, env)
    lines: list[str] = []
    while (part := _repeated(results.values())) is not None:
        name = f"t{len(lines)}_"
        printer = CppPrinter(compute, kinds, **types)
        kind = printer.kind(part)
        text = printer.to(part, kind)
        lines.append(f"const {printer.ctype(kind, part)} {name} = {text};")
        kinds[name] = kind
        results = {key: replace(expr, part, name) for key, expr in results.items()}
    printer = CppPrinter(compute, kinds, **types)
    return lines, {
        key: printer.to(expr, want or printer.kind(expr))
        for key, expr in results.items()
    }


def _kinds(
    expressions: Iterable[Expr], compute: str, env: Mapping[str, str] | None
) -> dict[str, str]:
    used = {name for expr in expressions for name in names(expr)}
    return dict.fromkeys(used, compute) | dict(env or {})


def _repeated(expressions: Iterable[Expr]) -> Expr | None:
    """A smallest compound part that occurs twice or more."""
    counts = Counter(
        node for expr in expressions for node in walk(expr) if node.children
    )
    repeated = [node for node, count in counts.items() if count > 1]
    return min(repeated, key=lambda n: sum(1 for _ in walk(n)), default=None)
