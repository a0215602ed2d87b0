"""Which pointwise operators there are and on what they are called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tolerance import rounding  # noqa: E402

from test.opinfo.references import REFERENCES  # noqa: E402
from tools.codegen.model import Operator, load_operators  # noqa: E402
from tools.codegen.pointwise import CONDITIONS  # noqa: E402
from tools.codegen.record_types import Pointwise  # noqa: E402

NUMPY_TYPES = {
    "bool": np.bool_,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
    "c128": np.complex128,
}
# Absolute and relative error allowed against the reference: roundings of a formula.
STEPS = {"float32": 64, "float64": 64, "complex128": 256}
TOLERANCE = {dtype: rounding(dtype, steps) for dtype, steps in STEPS.items()}


def pointwise_operators() -> list[Operator]:
    """Functional forms of public pointwise overloads that take only tensors."""
    found = []
    for op in load_operators(ROOT / "aten/ops"):
        if not isinstance(op.overload.body, Pointwise) or op.form != "functional":
            continue
        # PyTorch's private operators too take only what their callers give them.
        if op.record.python.private or op.record.name.startswith("_"):
            continue
        required = [a for a in op.arguments if not a.has_default]
        if all(a.type.is_tensor and not a.type.is_optional for a in required):
            found.append(op)
    return found


def reference(op: Operator) -> Callable | None:
    """A function of NumPy arrays giving one; None if there is no reference."""
    if op.record.name in REFERENCES:
        return REFERENCES[op.record.name]
    import torch

    function = getattr(torch.ops.aten, op.record.name, None)
    if function is None:
        return None
    return lambda *a: function(*map(torch.from_numpy, a)).numpy()


def arrays(op: Operator, dtype: str, kind: str) -> list[np.ndarray]:
    """Operands of one of the layout kinds; conditions are bool, fill values 0-d."""
    needed = [a for a in op.arguments if a.type.is_tensor and not a.has_default]
    if kind == "broadcast" and op.record.name.endswith("entropy_backward"):
        kind = "contiguous"  # the result has the shape of `self` in PyTorch
    rng = np.random.default_rng(len(kind))
    return [
        _array(
            rng,
            "bool" if a.name in CONDITIONS else dtype,
            "scalar" if a.name == "value" else kind,
            i,
        )
        for i, a in enumerate(needed)
    ]


def _array(rng: np.random.Generator, dtype: str, kind: str, index: int) -> np.ndarray:
    shape = {"scalar": (), "empty": (0, 3)}.get(kind, (5, 6))
    if kind == "broadcast" and index:
        shape = (6,)
    values = rng.uniform(0.1, 0.9, size=shape) * (1 if index else rng.choice([-1, 1]))
    if dtype.startswith("c"):
        values = values + 1j * rng.uniform(0.1, 0.9, size=shape)
    elif dtype in ("u8", "i32", "i64"):
        low = 1 if index or dtype == "u8" else -4
        values = rng.integers(low, 7, size=shape)
        values = np.where(values == 0, 1, values)
    elif dtype == "bool":
        values = rng.integers(0, 2, size=shape)
    if kind == "odd" and dtype in ("f32", "f64"):
        flat = values.reshape(-1)
        flat[:5] = [np.inf, -np.inf, np.nan, 0.0, -0.0]
    array = np.asarray(values).astype(NUMPY_TYPES[dtype])
    return array.T.copy().T if kind == "strided" and array.ndim == 2 else array


def kinds() -> Iterator[str]:
    """The layout kinds of `arrays`."""
    yield from ("contiguous", "strided", "scalar", "empty", "broadcast", "odd")
