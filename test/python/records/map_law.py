"""Formulas of index maps, computed element by element from their trees.

The text of a tree becomes Python in which each node is one step: `x if t else y` reads
only what is chosen, a read outside of a tensor is an IndexError. So a formula cannot
pass by being masked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import special

from tools.codegen.expr_ast import (
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
from tools.codegen.expr_functions import CONSTANTS, FUNCTIONS

WHOLE = {"floor_divide": "//", "remainder": "%"}
CHOICES = {"minimum": "min", "maximum": "max", "abs": "abs"}
CASTS = {"bool": "bool", "int": "int", "float": "float", "complex": "complex"}
# Roundings allowed between two ways to write the same floating-point formula.
STEPS = 8


class Element:
    """What the formula of one element sees: its place, sizes, tensors, lists."""

    def __init__(self, values: dict, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.values, self.shape, self.dtype = values, shape, dtype
        self.index: tuple[int, ...] = ()
        self.position = 0

    def shape_of(self, name: str) -> tuple[int, ...]:
        return self.shape if name == "result" else self.values[name].shape

    def at(self, axis: int) -> int:
        return self.index[axis] if self.shape else 0

    def size(self, name: str, axis: int) -> int:
        shape = self.shape_of(name)
        return shape[axis] if shape else 1

    def rank(self, name: str) -> int:
        return len(self.shape_of(name))

    def numel(self, name: str) -> int:
        return math.prod(self.shape_of(name))

    def _place(self, name: str, index: Callable) -> tuple[int, ...]:
        return tuple(int(index(axis)) for axis in range(self.rank(name)))

    def inside(self, name: str, index: Callable) -> bool:
        pairs = zip(self._place(name, index), self.shape_of(name), strict=True)
        return all(0 <= i < size for i, size in pairs)

    def read(self, name: str, index: Callable) -> object:
        if not self.inside(name, index):
            raise IndexError(f"{name} has no element {self._place(name, index)}")
        return self.values[name][self._place(name, index)].item()

    def flat(self, name: str, number: int) -> object:
        if not 0 <= number < self.numel(name):
            raise IndexError(f"{name} has no element number {number}")
        return self.values[name].reshape(-1)[number].item()

    def entry(self, name: str, number: int) -> object:
        return self.values[name][number]

    def len(self, name: str) -> int:
        return len(self.values[name])

    def names(self, name: str, axis: int) -> bool:
        rank = max(len(self.shape), 1)
        return any(dim % rank == axis for dim in self.values[name])

    def along(self, name: str, dims: str, axis: int) -> object:
        rank = max(len(self.shape), 1)
        pairs = zip(self.values[name], self.values[dims], strict=True)
        return sum(value for value, dim in pairs if dim % rank == axis)

    def missing(self, name: str) -> bool:
        return self.values[name] is None

    def cast(self, value: object) -> object:
        """To the kind of the result's dtype."""
        kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
        return kind[self.dtype.kind](value)


def source(expr: Expr, exact: bool = True) -> str:
    """Python for a tree, over `e` (an Element), `axis`, `np`, `special`, `math`.

    What is not `exact` is IEEE arithmetic: NaN and division by 0 have results.
    """
    args = [source(child, exact) for child in expr.children]
    match expr:
        case Literal():
            return f"({expr.value!r})"
        case Constant():
            return f"float('{CONSTANTS[expr.name]!r}')"
        case Name():
            own = {"axis": "axis", "position": "e.position"}
            return own.get(expr.name, f"e.values[{expr.name!r}]")
        case Unary():
            return f"({expr.op} {args[0]})"
        case Binary(op="/") if not exact:
            return f"np.true_divide({args[0]}, {args[1]})"
        case Binary() | Compare() | Logic():
            return f"({args[0]} {expr.op} {args[1]})"
        case Cond():
            return f"({args[1]} if {args[0]} else {args[2]})"
        case Cast():
            return f"{CASTS.get(expr.kind, 'e.cast')}({args[0]})"
        case Call(function=name) if name in WHOLE:
            return f"({args[0]} {WHOLE[name]} {args[1]})"
        case Call(function=name) if exact and name in CHOICES:
            return f"{CHOICES[name]}({', '.join(args)})"
        case Call():
            return FUNCTIONS[expr.function].numpy.format(*args)
        case Access():
            return _access(expr, args)
    raise TypeError(f"{expr!r} is no part of a formula")


def _access(expr: Access, args: list[str]) -> str:
    if expr.op == "at":
        return f"e.at({args[0]})"
    first, *rest = args
    texts = [repr(expr.args[0].name), *rest]
    if expr.op in ("read", "inside"):
        texts[1] = f"lambda axis: {texts[1]}"
    if expr.op == "along":
        texts[1] = repr(expr.args[1].name)
    return f"e.{expr.op}({', '.join(texts)})"


def is_exact(expr: Expr) -> bool:
    """Whether the value is one that was given: how it was chosen does not matter."""
    match expr:
        case Cond():
            return is_exact(expr.then) and is_exact(expr.other)
        case Compare() | Unary():
            return all(map(is_exact, expr.children))
    return isinstance(expr, Access | Name | Literal)


def elements(expr: Expr, values: dict, like: np.ndarray) -> Iterator[tuple]:
    """(index, value) of every element of a result with the shape of `like`."""
    e = Element(values, like.shape, like.dtype)
    scope = {"e": e, "np": np, "special": special, "math": math}
    function = eval(f"lambda: {source(expr)}", scope)
    for number, index in enumerate(np.ndindex(like.shape)):
        e.index, e.position = index, number
        yield index, function()


def assert_equal(expr: Expr, values: dict, result: np.ndarray) -> int:
    """Compares a result with the formula; how many elements it has."""
    exact = is_exact(expr)
    wide = result.dtype.kind in "fc"
    finite = np.abs(result[np.isfinite(result)]) if wide else np.zeros(0)
    # The terms of windows are of size one where their sums vanish.
    scale = float(finite.max(initial=1))
    step = STEPS * np.finfo(result.dtype).eps * scale if wide else 1e-12
    count = 0
    for index, value in elements(expr, values, result):
        count += 1
        have = result[index].item()
        same = _converted(value, result.dtype) == have or (value != value) & (
            have != have
        )
        if not same and not exact:
            same = _close(value, have, result.dtype, step)
        assert same, f"at {index}: the kernel has {have!r}, the formula {value!r}"
    return count


def _converted(value: object, dtype: np.dtype) -> object:
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        return int(value)
    return np.asarray(value).astype(dtype).item()


def _close(value: object, have: object, dtype: np.dtype, step: float) -> bool:
    if dtype.kind in "fc":
        return abs(value - have) <= step
    # A whole number of a rounded one: either side of it may have been meant.
    near = step * max(abs(value), 1)
    return have in (int(value - near), int(value + near))
