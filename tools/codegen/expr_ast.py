"""The nodes of the scalar expression language; an illegal node cannot be built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .errors import CodegenError
from .expr_functions import CONSTANTS, FUNCTIONS

KINDS = ("bool", "int", "float", "complex")
ARITHMETIC = ("+", "-", "*", "/")
BITWISE = ("&", "|", "^", "<<", ">>")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
# `T` is the compute type itself, whatever its kind.
CAST_KINDS = (*KINDS, "T")


@dataclass(frozen=True)
class Expr:
    """Base of all nodes; `column` serves error carets and is not part of equality."""

    column: int = field(default=-1, compare=False, repr=False, kw_only=True)

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return self

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            column = self.column if self.column >= 0 else None
            raise CodegenError(message, column=column)

    def _require_exprs(self) -> None:
        for child in self.children:
            self.require(isinstance(child, Expr), f"{child!r} is no expression node")

    def __str__(self) -> str:
        from .expr_print import to_text

        return to_text(self)


@dataclass(frozen=True)
class Literal(Expr):
    """A number; 1, 1.0 and True are different literals."""

    value: bool | int | float | complex
    kind: str = field(init=False)

    def __post_init__(self) -> None:
        kind = type(self.value).__name__
        self.require(kind in KINDS, f"{self.value!r} is no number")
        object.__setattr__(self, "kind", kind)


@dataclass(frozen=True)
class Constant(Expr):
    """A named number: pi, e, inf, nan, or a limit of the compute type."""

    name: str

    def __post_init__(self) -> None:
        self.require(self.name in CONSTANTS, f"unknown constant {self.name!r}")


@dataclass(frozen=True)
class Name(Expr):
    """A variable: an operand, a scalar argument, `grad` or `result`; or one of a part
    (`a.mean`)."""

    name: str

    def __post_init__(self) -> None:
        named = all(part.isidentifier() for part in self.name.split("."))
        self.require(named, f"{self.name!r} is no name")


@dataclass(frozen=True)
class Unary(Expr):
    op: str
    operand: Expr

    def __post_init__(self) -> None:
        self.require(self.op in ("-", "not", "~"), f"unknown operator {self.op!r}")
        self._require_exprs()

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return dataclasses.replace(self, operand=children[0])


@dataclass(frozen=True)
class _Infix(Expr):
    op: str
    left: Expr
    right: Expr

    OPERATORS = ()

    def __post_init__(self) -> None:
        self.require(self.op in self.OPERATORS, f"unknown operator {self.op!r}")
        self._require_exprs()

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return dataclasses.replace(self, left=children[0], right=children[1])


@dataclass(frozen=True)
class Binary(_Infix):
    OPERATORS = ARITHMETIC + BITWISE


@dataclass(frozen=True)
class Compare(_Infix):
    OPERATORS = COMPARISONS


@dataclass(frozen=True)
class Logic(_Infix):
    """`and` / `or`, both sides computed."""

    OPERATORS = ("and", "or")


@dataclass(frozen=True)
class Cond(Expr):
    """`then if test else other`, a select: both arms are computed."""

    test: Expr
    then: Expr
    other: Expr

    def __post_init__(self) -> None:
        self._require_exprs()

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.test, self.then, self.other)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        test, then, other = children
        return dataclasses.replace(self, test=test, then=then, other=other)


@dataclass(frozen=True)
class Call(Expr):
    """A function of the table `expr_functions.FUNCTIONS`."""

    function: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        known = FUNCTIONS.get(self.function)
        self.require(known is not None, f"unknown function {self.function!r}")
        if known is not None:
            self.require(
                len(self.args) == known.arity,
                f"{self.function} takes {known.arity} arguments, got {len(self.args)}",
            )
        self._require_exprs()

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return dataclasses.replace(self, args=children)


@dataclass(frozen=True)
class Cast(Expr):
    """`float(x)`, `int(x)`, `bool(x)`, `complex(x)`, or `cast(x)` to compute type."""

    kind: str
    operand: Expr

    def __post_init__(self) -> None:
        self.require(self.kind in CAST_KINDS, f"unknown cast {self.kind!r}")
        self._require_exprs()

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return dataclasses.replace(self, operand=children[0])


# What index maps look at (docs/design/records.md, section 3), with the number of
# arguments. The order is that of expr::AccessOp in aten/expr/graph.h.
ACCESS = {
    "at": 1,  # the element's index along an axis of the result
    "size": 2,  # of a tensor along an axis
    "rank": 1,
    "numel": 1,
    "read": 2,  # a tensor's element; the index along each `axis`
    "flat": 2,  # a tensor's element by its number in row-major order
    "entry": 2,  # of a list
    "len": 1,
    "names": 2,  # whether a list of axes has this one
    "along": 3,  # the sum of a list's entries at the places where axes name this one
    "missing": 1,  # whether an argument is None
    "inside": 2,  # whether a tensor has the element that `read` would read
}


@dataclass(frozen=True)
class Access(Expr):
    """What an index map looks at: its own place, sizes, elements of tensors, lists."""

    op: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        arity = ACCESS.get(self.op)
        self.require(arity is not None, f"unknown access {self.op!r}")
        self.require(
            len(self.args) == arity,
            f"{self.op} takes {arity} arguments, got {len(self.args)}",
        )
        self._require_exprs()
        if self.op != "at":
            named = isinstance(self.args[0], Name)
            self.require(named, f"{self.op} wants the name of an argument")

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return dataclasses.replace(self, args=children)


AXIS = Name("axis")
# A read of the same index as the element has.
SAME = Access("at", (AXIS,))
ZERO = Literal(0)
ONE = Literal(1)


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and everything below it, parents first."""
    yield expr
    for child in expr.children:
        yield from walk(child)


def names(expr: Expr) -> frozenset[str]:
    """The variables that occur."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, Name))


def map_children(expr: Expr, function: Callable[[Expr], Expr]) -> Expr:
    old = expr.children
    new = tuple(function(child) for child in old)
    unchanged = all(a is b for a, b in zip(old, new, strict=True))
    return expr if unchanged else expr.with_children(new)


def replace(expr: Expr, part: Expr, name: str | Expr) -> Expr:
    """Every occurrence of `part` becomes the variable `name` (a saved result)."""
    if expr == part:
        return Name(name) if isinstance(name, str) else name
    return map_children(expr, lambda child: replace(child, part, name))


def substitute(expr: Expr, values: dict[str, Expr]) -> Expr:
    """Variables replaced by expressions, all at once."""
    if isinstance(expr, Name):
        return values.get(expr.name, expr)
    return map_children(expr, lambda child: substitute(child, values))
