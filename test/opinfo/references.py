"""Independent references of pointwise operators, as functions of NumPy arrays.

An operator that PyTorch has under the same name needs no entry: PyTorch is its
reference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special


def _floating(function: Callable) -> Callable:
    """The function with PyTorch's result type: integers give float32."""

    def call(x: np.ndarray) -> np.ndarray:
        return np.asarray(function(x)).astype(x.dtype if x.dtype.kind == "f" else "f4")

    return call


def _softsign(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # inf / inf
        return x / (np.abs(x) + x.dtype.type(1))


def _gelu(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # -inf * 0
        return x * (0.5 * (1 + special.erf(x * np.sqrt(0.5))))


REFERENCES: dict[str, Callable] = {
    # PyTorch's vectors have NaN at infinity.
    "gelu": _floating(_gelu),
    # PyTorch and SciPy have NaN at infinity.
    "i0": _floating(lambda x: np.where(np.isinf(x), np.inf, special.i0(x))),
    "softsign": _softsign,
    "special_i1": _floating(lambda x: np.where(np.isinf(x), x, special.i1(x))),
}
