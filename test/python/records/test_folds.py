"""Every reduction and scan that has a formula beside a kernel: both say the same."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import taeda
from axes_cells import function_of
from axes_law import results_of
from fold_law import Fold, agree, holds
from map_calls import dim_of, real, sizes, whole
from test_maps import spread

from tools.codegen.fold_formula import formulas_of, step_of
from tools.codegen.record_types import Folded, FoldedOfOthers
from tools.codegen.records import Overload, load_records
from tools.codegen.schema_types import Argument

ROOT = Path(__file__).resolve().parents[3]
FOLDS = {
    o.schema.name: o
    for r in load_records(ROOT / "aten" / "ops")
    for o in r.overloads
    if isinstance(o.body, Folded | FoldedOfOthers)
}
CALLS = 16
DTYPES = ("float64", "float32", "int64", "bool", "complex128")
ORDERS = (0, 1, 2, 3, 0.5, -1, math.inf, -math.inf)
CORRECTIONS = (None, 0, 1, 2, 0.5)
# Two vectors; two tensors that are broadcast.
VECTORS, BROADCAST = ("dot", "vdot"), ("dist", "linalg_vecdot")
# Overloads that refuse a dtype in every call, as PyTorch's do, and which.
_NAMES = {name: name.split(".")[0] for name in FOLDS}
ORDERED = ("max", "min", "argmax", "argmin", "aminmax", "_aminmax", "cummax", "cummin")
MOMENTS = ("var", "std", "var_mean", "std_mean")
REFUSED: dict[str, set[str]] = {
    name: refused
    for bases, refused in (
        (ORDERED, {"complex128"}),
        ((*MOMENTS, "norm", "nanmean", "dist"), {"int64", "bool"}),
        (("dot", "vdot"), {"bool"}),
        (("logcumsumexp",), {"int64", "bool"}),
    )
    for name, base in _NAMES.items()
    if base in bases
}
# The means of infinite elements: whether they are NaN hangs on the order.
FINITE = ("var_mean", "std_mean")


def shapes_of(name: str, r: np.random.Generator) -> Iterator[list[int]]:
    """The shapes of all tensor arguments."""
    shape = sizes(r, 1, 1) if name in VECTORS else sizes(r, 0, 3)
    yield shape
    if name in BROADCAST:
        shape = [s if r.integers(3) else 1 for s in shape]
    while True:
        yield shape


def drawn(name: str, r: np.random.Generator) -> dict:
    """A random call, by the names and types of the arguments."""
    shapes = shapes_of(name, r)
    values: dict = {}
    for argument in FOLDS[name].schema.arguments:
        if argument.type.is_tensor:
            # Ties, and what is far apart.
            shape = next(shapes)
            make = real(r, shape) if r.integers(2) else whole(r, 4, shape) - 2.0
            values[argument.name] = np.asarray(make)
            rank = len(shape)
        else:
            values[argument.name] = number(argument, r, rank)
    return values


def number(argument: Argument, r: np.random.Generator, rank: int) -> object:
    if argument.name == "dim":
        return dims(argument, r, rank)
    if argument.name in ("p", "correction"):
        choices = ORDERS if argument.name == "p" else CORRECTIONS
        value = choices[int(r.integers(len(choices)))]
        absent = argument.type.is_optional and not r.integers(4)
        return None if absent else value
    if argument.type.base == "ScalarType":
        return "any" if r.integers(2) or not argument.type.is_optional else None
    assert argument.type.base == "bool", argument
    return bool(r.integers(2))


def dims(argument: Argument, r: np.random.Generator, rank: int) -> object:
    if argument.type.is_optional and not r.integers(3):
        return None
    if not argument.type.is_list:
        return dim_of(r, rank)
    chosen = r.permutation(max(rank, 1))[: r.integers(0, max(rank, 1) + 1)]
    return [int(d) - max(rank, 1) * int(r.integers(2)) for d in chosen]


def special(values: dict, r: np.random.Generator, finite: bool) -> dict:
    """Some elements become NaN or infinite."""
    odd = np.array([math.nan] if finite else [math.nan, math.inf, -math.inf])
    return {
        name: np.asarray(
            np.where(r.integers(3, size=v.shape) > 0, v, r.choice(odd, size=v.shape))
        )
        if isinstance(v, np.ndarray)
        else v
        for name, v in values.items()
    }


def cells(overload: Overload, call: dict, r: np.random.Generator) -> Iterator[tuple]:
    """The call in each dtype, with special values, in order and spread out."""
    for dtype in DTYPES:
        values = {
            name: converted(v, dtype, r) if isinstance(v, np.ndarray) else v
            for name, v in call.items()
        }
        whole = dtype in ("int64", "bool")
        outs = overload.schema.out_args
        kept = "int64" if dtype == "bool" and overload.family == "scan" else dtype
        if values.get("dtype") is not None:
            wide = whole and not outs and overload.schema.base != "norm"
            values["dtype"] = getattr(taeda, "float64" if wide else kept)
        for argument in outs:
            values[argument.name] = taeda.empty(0, dtype=getattr(taeda, kept))
        yield dtype, "dense", values
        yield dtype, "spread", values
        if dtype == "float64":
            yield dtype, "dense", special(values, r, overload.schema.base in FINITE)


def converted(value: np.ndarray, dtype: str, r: np.random.Generator) -> np.ndarray:
    if dtype == "complex128":
        return np.asarray(value + 1j * r.uniform(-2, 2, size=value.shape))
    return value.astype(dtype)


class Expected:
    """What the formula computes for a call."""

    def __init__(self, overload: Overload, values: dict) -> None:
        formula = next(f for f in formulas_of(overload) if holds(f.when, values))
        tensors = {n: v for n, v in values.items() if isinstance(v, np.ndarray)}
        if isinstance(values.get("dtype"), taeda.dtype):
            name = str(values["dtype"]).removeprefix("taeda.")
            tensors = {n: v.astype(name) for n, v in tensors.items()}
        same = np.broadcast_arrays(*tensors.values())
        self.shape = same[0].shape
        self.operands = {
            name: v.reshape(v.shape or (1,))
            for name, v in zip(tensors, same, strict=True)
        }
        self.rank = max(len(self.shape), 1)
        self.fold = Fold(formula, {n: v for n, v in values.items() if n not in tensors})
        self.step = step_of(overload)
        self.order = values.get("p") or 0 if overload.schema.base == "norm" else 0
        self.axes = self._axes(values)
        self.keep = self.step is not None or values.get("keepdim", False)

    def _axes(self, values: dict) -> list[int]:
        dim = values.get("dim")
        if dim is None or dim == []:
            return list(range(self.rank))
        dims = [dim] if isinstance(dim, int) else dim
        return sorted(d % self.rank for d in dims)

    def result_shape(self) -> tuple[int, ...]:
        if self.step is not None:
            return self.shape
        kept = [1 if i in self.axes else s for i, s in enumerate(self.shape)]
        if self.keep:
            return tuple(kept)
        return tuple(s for i, s in enumerate(self.shape) if i not in self.axes)

    def rows(self) -> Iterator[tuple[dict, int]]:
        """The elements that become one result, or one row of a scan; how many."""
        others = [i for i in range(self.rank) if i not in self.axes]
        order = [*others, *self.axes]
        moved = {n: v.transpose(order) for n, v in self.operands.items()}
        first = next(iter(moved.values()))
        outer = first.shape[: len(others)]
        for place in np.ndindex(outer):
            flat = {n: v[place].reshape(-1) for n, v in moved.items()}
            yield flat, next(iter(flat.values())).size

    def _states(self, row: dict, size: int) -> list[tuple]:
        return [
            self.fold.one({n: v[i].item() for n, v in row.items()}, i)
            for i in range(size)
        ]

    @property
    def refuses(self) -> bool:
        """Whether results have no element, and the formula nothing for them.

        Norms of negative or infinite order have something, and are refused in PyTorch.
        """
        empty = math.prod(self.shape[i] for i in self.axes if self.shape) == 0
        some = self.fold.has_identity and self.order >= 0 and self.order != math.inf
        return self.step is None and empty and not some

    def results(self, r: random.Random) -> Iterator[list[tuple]]:
        """For each result in row-major order: the ways to compute it."""
        for row, size in self.rows():
            states = self._states(row, size)
            if self.step is None:
                ways = [self.fold.tree(states, r)]
                ways += [*self.fold.running(states)][-1:]
                yield [self.fold.results(way, size) for way in ways]
                continue
            yield from self._scanned(states, size, r)

    def _scanned(self, states: list, size: int, r: random.Random) -> list[list[tuple]]:
        back = self.step.value < 0
        if back:
            # Running from the end combines in the elements' order of the scan.
            states = states[::-1]
        found = []
        for i, state in enumerate(self.fold.running(states)):
            ways = [state, self.fold.tree(states[: i + 1], r)]
            found.append([self.fold.results(way, size) for way in ways])
        return found[::-1] if back else found

    def compare(self, results: list[np.ndarray], r: random.Random) -> int:
        """Asserts that the kernel's results are these; how many values there were."""
        shape = self.result_shape()
        assert all(result.shape == shape for result in results)
        dims = max(len(shape), 1)
        rows = [x.reshape(x.shape or (1,)) for x in results]
        if self.step is not None:
            rows = [np.moveaxis(x, self.axes[0], dims - 1) for x in rows]
        flat = [x.reshape(-1) for x in rows]
        scales = [scale_of(x) for x in flat]
        count = 0
        for at, ways in enumerate(self.results(r)):
            for way in ways:
                for value, result, scale in zip(way, flat, scales, strict=True):
                    have = result[at].item()
                    assert agree(value, have, result.dtype, scale), (
                        f"result {at}: the kernel has {have!r}, the formula {value!r}"
                    )
            count += len(flat)
        assert count == sum(x.size for x in flat)
        return count


def scale_of(result: np.ndarray) -> float:
    if result.dtype.kind not in "fc":
        return 1.0
    return float(np.abs(result[np.isfinite(result)]).max(initial=1))


def run(overload: Overload, values: dict, layout: str) -> list[np.ndarray]:
    make = spread if layout == "spread" else (lambda v: taeda.from_numpy(v.copy()))
    given = {n: make(v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
    returned = function_of(overload.schema)(**given)
    return [t.numpy() for t in results_of(overload.schema, returned, given)]


@pytest.mark.parametrize("name", FOLDS)
def test_formula_is_the_kernel(name: str) -> None:
    overload = FOLDS[name]
    r = np.random.default_rng([ord(c) for c in name])
    ways = random.Random(name)
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    made, reason = 0, ""
    for _ in range(CALLS):
        call = drawn(name, r)
        for dtype, layout, values in cells(overload, call, r):
            expected = Expected(overload, values)
            try:
                results = run(overload, values, layout)
            except (RuntimeError, NotImplementedError, IndexError) as error:
                if not expected.refuses:
                    refused[dtype] += 1
                    reason = str(error)[:160]
                continue
            # Without results there is nothing to refuse, but an operator may.
            assert not expected.refuses or results[0].size == 0, values
            made += expected.compare(results, ways)
            done[dtype] += 1
    print(f"{name}: {done.total()} cells, {made} values, refused {dict(refused)}")
    never = {dtype for dtype in DTYPES if not done[dtype]}
    assert never == REFUSED.get(name, set()), reason
    assert refused.keys() <= never, reason
    assert made > CALLS


def test_every_formula_is_here() -> None:
    families = Counter(o.family for o in FOLDS.values())
    assert families["scan"] >= 8
    assert families["reduction"] >= 35
