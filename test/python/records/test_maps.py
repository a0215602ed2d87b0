"""Every index map: its formula, element by element, is what its kernel computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import taeda
from axes_cells import function_of
from axes_law import results_of
from map_calls import DRAWS, calls
from map_law import assert_equal
from recorded import bind_values

from tools.codegen.map_formula import formula_of
from tools.codegen.records import Overload, load_records

ROOT = Path(__file__).resolve().parents[3]
MAPS = {
    o.schema.name: o
    for r in load_records(ROOT / "aten" / "ops")
    for o in r.overloads
    if o.family == "map"
}
# Those that have one truth value but no sequence of them.
SOME = {name: {"bool"} for name in MAPS if name.split(".")[0][3:] == "space"}
# Those whose tensors must lie in order, being views in all but name.
DENSE = {"_unsafe_view", "view_as"}
CALLS = 24
DTYPES = ("float64", "int64", "bool")
# Overloads that refuse a dtype in every call, as PyTorch's do, and which.
REFUSED = {
    **{f"arange{form}": {"bool"} for form in ("", ".start", ".start_step")},
    **{f"arange.{form}": {"bool"} for form in ("out", "start_out")},
    **{f"range{form}": {"bool"} for form in ("", ".step", ".out", ".out_")},
    "im2col": {"int64"},
    "prelu": {"int64", "bool"},
    **dict.fromkeys(("linalg_cross", "positive"), {"bool"}),
    **{name: {"int64", "bool"} for name in MAPS if "_window" in name},
    **{name: {"int64", "bool"} for name in MAPS if "upsample" in name},
}


def is_float(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def spread(value: np.ndarray) -> taeda.Tensor:
    """The same values with gaps between them, and the axes in another order."""
    if value.ndim == 0:
        return taeda.from_numpy(value.copy())
    gaps = np.zeros((*value.shape[::-1], 2), dtype=value.dtype)
    gaps[..., 0] = value.T
    return taeda.from_numpy(gaps).select(-1, 0).permute(*range(value.ndim)[::-1])


def variants(overload: Overload, call: tuple) -> Iterator[tuple[str, str, dict]]:
    """The call in each dtype, its tensors in order and spread out."""
    schema = overload.schema
    names = [a.name for a in schema.arguments]
    plain = bind_values(schema, ((), dict(zip(names, call, strict=False))))
    for dtype in DTYPES:
        cast = {
            name: value.astype(dtype) if is_float(value) else value
            for name, value in plain.items()
        }
        if "dtype" in cast:
            cast["dtype"] = getattr(taeda, dtype)
        for argument in schema.out_args:
            cast[argument.name] = taeda.empty(0, dtype=getattr(taeda, dtype))
        yield dtype, "dense", cast
        tensors = any(isinstance(v, np.ndarray) for v in cast.values())
        if tensors and schema.name not in DENSE:
            yield dtype, "spread", cast


def check(overload: Overload, values: dict, layout: str) -> int:
    """Runs the kernel and compares; how many elements it made."""
    make = spread if layout == "spread" else (lambda v: taeda.from_numpy(v.copy()))
    given = {
        name: make(v) if isinstance(v, np.ndarray) else v for name, v in values.items()
    }
    returned = function_of(overload.schema)(**given)
    result = results_of(overload.schema, returned, given)[0].numpy()
    return assert_equal(formula_of(overload), values, result)


def test_every_map_has_calls() -> None:
    assert sorted(DRAWS) == sorted(MAPS)
    assert len(MAPS) >= 151


@pytest.mark.parametrize("name", MAPS)
def test_formula_is_the_kernel(name: str) -> None:
    overload = MAPS[name]
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    made, reason = 0, ""
    for call in calls(name, CALLS):
        for dtype, layout, values in variants(overload, call):
            try:
                made += check(overload, values, layout)
            except (RuntimeError, NotImplementedError) as error:
                refused[dtype] += 1
                reason = str(error)[:160]
                continue
            done[dtype] += 1
    print(f"{name}: {done.total()} cells, {made} elements, refused {dict(refused)}")
    never = {dtype for dtype in DTYPES if not done[dtype]}
    assert never == REFUSED.get(name, set()), reason
    assert refused.keys() <= never | SOME.get(name, set()), reason
    assert all(done[dtype] >= CALLS for dtype in DTYPES if not refused[dtype])
    assert made > CALLS
