"""Formulas of reductions and scans (`fold`), computed from their trees.

Elements become states and states are combined in two ways, one after the other and as a
random tree with the state of no element in between: a formula whose `combine` depends
on how elements were parted gives two answers, of which one is not the kernel's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from map_law import source
from scipy import special

from tools.codegen.choices import When
from tools.codegen.expr_ast import Expr
from tools.codegen.fold_formula import COUNT, INDEX, FoldFormula, part_names

State = tuple[object, ...]
# Roundings allowed between two orders of the same operations.
STEPS = 64


class Names:
    """What a tree sees: numbers by name."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def missing(self, name: str) -> bool:
        return self.values[name] is None


class Fold:
    """The functions of a formula, for one call's arguments."""

    def __init__(self, formula: FoldFormula, arguments: dict[str, object]) -> None:
        self.arguments, self.names = arguments, formula.accumulators
        self.parts = part_names(formula.accumulators)
        self._seen = Names()
        self._init = [self._function(tree) for tree in formula.init]
        self._map = [self._function(tree) for tree in formula.map]
        self._combine = [self._function(tree) for tree in formula.combine]
        self._finish = [self._function(tree) for tree in formula.finish]

    def _function(self, tree: Expr) -> Callable[[], object]:
        scope = {"e": self._seen, "np": np, "special": special, "math": math}
        return eval(f"lambda: {source(tree, exact=False)}", scope)

    def _values(self, functions: list, values: dict[str, object]) -> State:
        self._seen.values = values
        with np.errstate(all="ignore"):
            return tuple(function() for function in functions)

    @property
    def has_identity(self) -> bool:
        return bool(self._init)

    def none(self) -> State:
        """The state of no element."""
        return self._values(self._init, {})

    def one(self, element: dict[str, object], index: int) -> State:
        """The state of one element."""
        values = {**self.arguments, **element, INDEX: index}
        return self._values(self._map, values)

    def both(self, a: State, b: State) -> State:
        """The state of two parts side by side."""
        return self._values(self._combine, dict(zip(self.parts, (*a, *b), strict=True)))

    def results(self, state: State, count: int) -> State:
        own = dict(zip(self.names, state, strict=True))
        return self._values(self._finish, {**self.arguments, **own, COUNT: count})

    def running(self, states: Sequence[State]) -> Iterator[State]:
        """The state up to each element."""
        state: State | None = None
        for each in states:
            state = each if state is None else self.both(state, each)
            yield state

    def tree(self, states: Sequence[State], r: random.Random) -> State:
        """All states combined in pairs, wherever they are cut."""
        if not states:
            return self.none()
        if self.has_identity and not r.randrange(4):
            pair = (self.none(), self.tree(states, r))
            return self.both(*(pair if r.randrange(2) else pair[::-1]))
        if len(states) == 1:
            return states[0]
        cut = r.randrange(1, len(states))
        return self.both(self.tree(states[:cut], r), self.tree(states[cut:], r))


def holds(when: When, values: dict[str, object]) -> bool:
    """Whether a call's arguments are those of a choice; `otherwise` is tried last."""
    return all(_is(values[c.argument], str(c.value)) for c in when)


def _is(value: object, wanted: str) -> bool:
    if wanted in ("absent", "given"):
        return (value is None) == (wanted == "absent")
    if wanted == "otherwise":
        return True
    operator, _, number = wanted.partition(" ")
    assert operator == "==", f"no test here compares by {operator}"
    return value is not None and value == float(number)


def agree(value: object, have: object, dtype: np.dtype, scale: float) -> bool:
    """Whether a value of the formula is an element of the kernel's result."""
    if dtype.kind == "b":
        return bool(value) == have
    if dtype.kind in "iu":
        return int(value) == have
    if value == have or (value != value and have != have):
        return True
    return bool(abs(value - have) <= STEPS * np.finfo(dtype).eps * scale)
