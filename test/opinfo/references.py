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


REFERENCES: dict[str, Callable] = {
    # PyTorch has NaN at infinity.
    "i0": _floating(special.i0),
    "special_i1": _floating(special.i1),
}
