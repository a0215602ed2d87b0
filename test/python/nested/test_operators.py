"""Every operator of elements on nested tensors, against PyTorch's, by dtype."""

from __future__ import annotations

import numpy as np
import pytest
import taeda
import taeda.nested
import torch
import torch.nested
from taeda._subclasses.carried import overloads

pytestmark = pytest.mark.filterwarnings("ignore")
DTYPES = ("float32", "float64", "int64", "bool")
# Pointwise operators that take one or two tensors and nothing else.
CELLS = 727


def operators() -> list[tuple[str, str, int]]:
    found = []
    for name in sorted(dir(taeda.ops.aten)):
        if name.startswith("_") or not hasattr(torch.ops.aten, name):
            continue
        for overload in overloads(name):
            record = overload.record
            needed = [a for a in overload._schema.arguments if not a.has_default]
            tensors = all(a.type == "Tensor" for a in needed)
            if record.family == "pointwise" and tensors and len(needed) in (1, 2):
                found.append((name, overload._overloadname, len(needed)))
                break
    return found


def result(lib, name: str, overload: str, dtype: str, count: int):
    values = (np.arange(18).reshape(6, 3) % 7 * 0.13 + 0.05).astype(dtype)
    if dtype == "int64":
        values = np.arange(1, 19).reshape(6, 3) % 5 + 1
    offsets = lib.tensor([0, 2, 6])
    tensors = [
        lib.nested.nested_tensor_from_jagged(lib.from_numpy(values.copy()), offsets)
        for _ in range(count)
    ]
    try:
        found = getattr(getattr(lib.ops.aten, name), overload)(*tensors)
    except Exception as error:
        return error
    return found if not isinstance(found, tuple) else found[0]


def test_every_pointwise_operator_agrees():
    compared, wrong = 0, []
    for name, overload, count in operators():
        for dtype in DTYPES:
            want = result(torch, name, overload, dtype, count)
            if isinstance(want, Exception) or not want.is_nested:
                continue
            got = result(taeda, name, overload, dtype, count)
            compared += 1
            if isinstance(got, Exception):
                wrong.append((name, dtype, got))
                continue
            a, b = got.values(), want.values()
            same = str(a.dtype).partition(".")[2] == str(b.dtype).partition(".")[2]
            close = np.allclose(a.numpy(), b.numpy(), 1e-4, 1e-5, equal_nan=True)
            if not (same and close and got.offsets().tolist() == [0, 2, 6]):
                wrong.append((name, dtype, a, b))
    assert not wrong, wrong[:5]
    assert compared == CELLS
