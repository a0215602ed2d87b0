"""Every composite with an expression of one element: both compute the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import taeda
from fold_law import Names, agree
from map_calls import real, sizes
from map_law import source
from scipy import special
from test_folds import converted, run, scale_of
from test_folds import special as with_special

from tools.codegen.fold_formula import expression_of
from tools.codegen.record_types import PointwiseOfOthers
from tools.codegen.records import Overload, load_records
from tools.codegen.schema_types import Argument

ROOT = Path(__file__).resolve().parents[3]
COMPOSITES = {
    o.schema.name: o
    for r in load_records(ROOT / "aten" / "ops")
    for o in r.overloads
    if isinstance(o.body, PointwiseOfOthers)
}
CALLS = 16
DTYPES = ("float64", "float32", "int64", "complex128")
# Operators that refuse a dtype in every call, and which: complex numbers have no order,
# and what is written to must hold the result.
_ORDERED = ("clamp", "clamp_", "max", "min", "relu6", "relu6_")
REFUSED: dict[str, set[str]] = {
    **dict.fromkeys(_ORDERED, {"complex128"}),
    **dict.fromkeys(("selu", "selu_"), {"int64", "complex128"}),
    "float_power_": {"float32", "int64"},
    "true_divide_": {"int64"},
}


def drawn(overload: Overload, r: np.random.Generator) -> dict:
    """A random call; tensors behind the first are broadcast with it."""
    shape = sizes(r, 0, 3)
    values: dict = {}
    for argument in overload.schema.arguments:
        if argument in overload.schema.out_args:
            continue
        if argument.type.is_optional and not r.integers(3) and len(values) > 1:
            values[argument.name] = None
        elif argument.type.base == "Tensor":
            own = [s if r.integers(3) or not values else 1 for s in shape]
            values[argument.name] = real(r, own)
        else:
            values[argument.name] = number(argument, r)
    return values


def number(argument: Argument, r: np.random.Generator) -> object:
    if argument.type.base == "bool":
        return bool(r.integers(2))
    if argument.type.base == "float":
        return float(r.uniform(0, 1))
    return int(r.integers(-2, 4)) if r.integers(2) else float(r.uniform(-2, 4))


def cells(overload: Overload, call: dict, r: np.random.Generator) -> Iterator[tuple]:
    """The call in each dtype, in order and spread out, and with special values."""
    for dtype in DTYPES:
        values = {
            name: converted(v, dtype, r) if isinstance(v, np.ndarray) else v
            for name, v in call.items()
        }
        for argument in overload.schema.out_args:
            wide = overload.schema.base == "float_power" and dtype != "complex128"
            out = "float64" if wide else dtype
            values[argument.name] = taeda.empty(0, dtype=getattr(taeda, out))
        yield dtype, "dense", values
        yield dtype, "spread", values
        if dtype == "float64":
            yield dtype, "dense", with_special(values, r, finite=False)


def lifted(value: object, dtype: np.dtype) -> object:
    """An operand in the kind of numbers that the result has."""
    kind = {"f": float, "c": complex}.get(dtype.kind)
    return value if kind is None or value is None else kind(value)


def compare(overload: Overload, values: dict, result: np.ndarray) -> int:
    """Asserts that the result is the expression's, element by element."""
    seen = Names()
    scope = {"e": seen, "np": np, "special": special, "math": math}
    tree = expression_of(overload)
    function = eval(f"lambda: {source(tree, exact=False)}", scope)
    tensors = {n: v for n, v in values.items() if isinstance(v, np.ndarray)}
    values = {n: v for n, v in values.items() if not isinstance(v, taeda.Tensor)}
    same = dict(zip(tensors, np.broadcast_arrays(*tensors.values()), strict=True))
    assert all(v.shape == result.shape for v in same.values())
    scale = scale_of(result)
    for place in np.ndindex(result.shape):
        operands = values | {n: v[place].item() for n, v in same.items()}
        seen.values = {n: lifted(v, result.dtype) for n, v in operands.items()}
        with np.errstate(all="ignore"):
            value, have = function(), result[place].item()
        assert agree(value, have, result.dtype, scale), (
            f"at {place}: the operator has {have!r}, the expression {value!r}"
        )
    return result.size


@pytest.mark.parametrize("name", COMPOSITES)
def test_expression_is_the_composite(name: str) -> None:
    overload = COMPOSITES[name]
    r = np.random.default_rng([ord(c) for c in name])
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    made, reason = 0, ""
    for _ in range(CALLS):
        call = drawn(overload, r)
        for dtype, layout, values in cells(overload, call, r):
            try:
                [result, *_] = run(overload, values, layout)
            except (RuntimeError, NotImplementedError) as error:
                refused[dtype] += 1
                reason = str(error)[:160]
                continue
            made += compare(overload, values, result)
            done[dtype] += 1
    print(f"{name}: {done.total()} cells, {made} values, refused {dict(refused)}")
    never = {dtype for dtype in DTYPES if not done[dtype]}
    assert never == REFUSED.get(overload.schema.base, set()), reason
    assert made > CALLS


def test_every_expression_is_here() -> None:
    assert len(COMPOSITES) >= 28
