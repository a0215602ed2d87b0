"""Cells of the suite: a call whose tensors differ, and both ways to make it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import taeda
from axes_law import NoPlace, call_batched, results_of
from tolerance import EPSILON, rounding

from tools.codegen.axes import Axes
from tools.codegen.records import Overload
from tools.codegen.schema_types import Argument, Schema

SIZE = 3
# Roundings allowed between two orders of the same sums.
STEPS = 4096
# Factors of the copies: they keep signs, order, probabilities and definiteness.
SCALES = (1.0, 0.75, 0.5)


@dataclass
class Cell:
    """One overload, one recorded call, one choice of tensors that differ."""

    overload: Overload
    values: dict
    batched: frozenset[str]

    @property
    def schema(self) -> Schema:
        return self.overload.schema

    @property
    def axes(self) -> Axes:
        return self.overload.body.axes


def function_of(schema: Schema) -> Callable:
    """The overload as a function of its arguments by name; out= is empty each time."""
    packet = getattr(taeda.ops.aten, schema.base)
    overload = getattr(packet, schema.overload or "default")
    outs = [a.name for a in schema.out_args]

    def call(**values: object) -> object:
        empty = {name: taeda.empty(0, dtype=values[name].dtype) for name in outs}
        return overload(**values | empty)

    return call


def subsets(overload: Overload, values: dict) -> Iterator[frozenset[str]]:
    """Each tensor alone, every pair, all that have one of the places, and all."""
    axes, arguments = overload.body.axes, overload.schema.tensor_args
    there = {
        a.name: pattern
        for a, pattern in zip(arguments, axes.inputs, strict=True)
        if _is_there(values[a.name])
    }
    choices = {frozenset(there)}
    for number in (1, 2):
        choices |= set(map(frozenset, itertools.combinations(there, number)))
    for key in axes.places(overload.schema):
        choices.add(frozenset(n for n, pattern in there.items() if pattern.find(key)))
    yield from sorted(choices, key=sorted)


def _is_there(value: object) -> bool:
    return isinstance(value, taeda.Tensor) or (isinstance(value, list) and value != [])


def perturbed(t: taeda.Tensor, index: int, moved: bool) -> taeda.Tensor:
    """Another tensor of the kind: scaled, and its elements moved round."""
    if moved and t.dim() and index:
        t = t.flatten().roll(index).reshape(t.shape)
    if t.is_floating_point() or t.is_complex():
        return t * SCALES[index]
    return t.clone()


def variants(cell: Cell, moved: bool) -> list[dict]:
    """The calls one by one: tensors that are written are copies."""
    calls = []
    for index in range(SIZE):
        values = fresh(cell.schema, cell.values)
        for name in cell.batched:
            value = cell.values[name]
            values[name] = (
                [perturbed(t, index, moved) for t in value]
                if isinstance(value, list)
                else perturbed(value, index, moved)
            )
        calls.append(values)
    return calls


def fresh(schema: Schema, values: dict) -> dict:
    """The values with clones of what is written."""
    return values | {a.name: _copied(values, a) for a in schema.mutable_args}


def _copied(values: dict, argument: Argument) -> object:
    value = values[argument.name]
    if isinstance(value, list):
        return [t.clone() for t in value]
    return value if value is None else value.clone()


def stacked(cell: Cell, calls: list[dict]) -> dict:
    values = fresh(cell.schema, cell.values)
    for name in cell.batched:
        parts = [call[name] for call in calls]
        values[name] = (
            [taeda.stack(list(p)) for p in zip(*parts, strict=True)]
            if isinstance(parts[0], list)
            else taeda.stack(parts)
        )
    return values


def one_by_one(cell: Cell, calls: list[dict]) -> list:
    """Results of the calls, each stacked."""
    function, found = function_of(cell.schema), []
    for call in calls:
        call = fresh(cell.schema, call)
        found.append(results_of(cell.schema, function(**call), call))
    return [_stack(parts) for parts in zip(*found, strict=True)]


def _stack(parts: tuple) -> object:
    if parts[0] is None:
        return None
    if isinstance(parts[0], (list, tuple)):
        return [taeda.stack(list(p)) for p in zip(*parts, strict=True)]
    return taeda.stack(list(parts))


def check(cell: Cell, values_too: bool) -> bool:
    """Whether the axes give a way to make one call of it; asserts what it returns."""
    for moved in (True, False):
        calls = variants(cell, moved)
        try:
            want = one_by_one(cell, calls)
            break
        except (RuntimeError, ValueError, IndexError):
            if not moved:
                raise  # not even the recorded call
    batch = stacked(cell, calls)
    try:
        got = call_batched(
            function_of(cell.schema), cell.axes, cell.schema, batch, cell.batched, SIZE
        )
    except NoPlace:
        return False
    assert len(got) == len(want)
    for have, right in zip(got, want, strict=True):
        assert_same(have, right, values_too)
    return True


def assert_same(have: object, want: object, values_too: bool) -> None:
    if isinstance(want, list):
        assert len(have) == len(want)
        for a, b in zip(have, want, strict=True):
            assert_same(a, b, values_too)
        return
    assert (have is None) == (want is None)
    if want is None:
        return
    assert have.dtype == want.dtype
    assert have.shape == want.shape
    if values_too:
        name = str(want.dtype).removeprefix("taeda.")
        if want.dtype == taeda.uint64:  # which only stores
            have, want = have.view(taeda.int64), want.view(taeda.int64)
        if name not in EPSILON:
            assert taeda.equal(have, want)
            return
        error = rounding(name, min(STEPS, int(0.25 / EPSILON[name])))
        finite = want[want.isfinite()].abs()
        scale = float(finite.max()) if finite.numel() else 0.0
        assert taeda.allclose(
            have, want, rtol=error, atol=error * scale, equal_nan=True
        ), f"{have}\n{want}"
