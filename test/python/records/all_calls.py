"""Recorded calls of every functional overload, and the ways in which they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import taeda
from own_calls import own_calls
from recorded import bind_values, record

from tools.codegen.records import Overload, load_records
from tools.codegen.schema_types import Schema

ROOT = Path(__file__).resolve().parents[3]
# Calls of an overload that are looked at, the first of those recorded.
MOST = 4
# What reads elements to know the size of its result, and what two calls of do not
# give the same.
DATA_DEPENDENT = {"data_dependent_output", "dynamic_output_shape"}
UNSTEADY = {"nondeterministic_seeded"}

OVERLOADS = {
    o.schema.name: o
    for r in load_records(ROOT / "aten" / "ops")
    for o in r.overloads
    if not o.schema.out_args and not o.schema.mutable_args and o.schema.tensor_args
}


def is_steady(overload: Overload) -> bool:
    """Whether a call gives tensors, the same each time, of a size known beforehand."""
    if not all(r.type.is_tensor_like for r in overload.schema.returns):
        return False
    tags = {*overload.tags}
    return (
        not tags & (DATA_DEPENDENT | UNSTEADY) and "empty" not in overload.schema.base
    )


@cache
def all_calls() -> dict[str, list[dict]]:
    """Values of the arguments by name, some calls of each overload."""
    schemas = {name: o.schema for name, o in OVERLOADS.items() if is_steady(o)}
    found = record(schemas)
    reached = {*found}
    for name, *values in own_calls():
        if name not in schemas or name in reached:
            continue
        names = (a.name for a in schemas[name].arguments)
        given = dict(zip(names, values, strict=False))
        found.setdefault(name, []).append(bind_values(schemas[name], ((), given)))
    return {
        name: [call for call in calls if is_taken(schemas[name], call)][:MOST]
        for name, calls in found.items()
    }


def is_taken(schema: Schema, values: dict) -> bool:
    """Whether the overload takes the call: of private ones PyTorch's may take more."""
    try:
        overload_of(schema)(**values)
    except (RuntimeError, ValueError, TypeError):
        return False
    return True


def overload_of(schema: Schema) -> Callable:
    packet = getattr(taeda.ops.aten, schema.base)
    return getattr(packet, schema.overload or "default")


def tensors_in(value: object) -> Iterator[taeda.Tensor]:
    """The tensors of an argument or of results, lists one after the other."""
    if isinstance(value, taeda.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


def with_tensors(value: object, tensors: Iterator[taeda.Tensor]) -> object:
    """The value with other tensors in the places of its own."""
    if isinstance(value, taeda.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return [with_tensors(part, tensors) for part in value]
    return value


class Function:
    """A call as a function of some of its tensors, to results that are tensors."""

    def __init__(self, schema: Schema, values: dict, chosen: list[str]) -> None:
        self.overload = overload_of(schema)
        self.values, self.chosen = values, chosen

    @property
    def tensors(self) -> list[taeda.Tensor]:
        return [t for name in self.chosen for t in tensors_in(self.values[name])]

    def __call__(self, *tensors: taeda.Tensor) -> tuple[taeda.Tensor, ...]:
        rest = iter(tensors)
        new = {n: with_tensors(self.values[n], rest) for n in self.chosen}
        return tuple(tensors_in(self.overload(**self.values | new)))


def refused_argument(error: RuntimeError) -> str | None:
    """The argument that may not require gradients, if an error says so of one."""
    found = re.search(
        r"not differentiable with respect to argument '(\w+)'", str(error)
    )
    return found[1] if found else None


def argument_names(schema: Schema, values: dict) -> list[str]:
    """The arguments of a call that hold tensors."""
    names = (a.name for a in schema.tensor_args)
    return [n for n in names if any(True for _ in tensors_in(values[n]))]
