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


def _limits(function: Callable, left: float, right: float) -> Callable:
    """The function with its limits at infinity, where PyTorch and SciPy have NaN."""

    def call(x: np.ndarray) -> np.ndarray:
        value = np.where(x == np.inf, right, function(x))
        return np.where(x == -np.inf, left, value)

    return _floating(call)


def _zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    dtype = s.dtype if s.dtype.kind == "f" else "f4"
    value = np.where((q == np.inf) & (s > 1), 0, special.zeta(s, q))
    return np.asarray(value).astype(dtype)


REFERENCES: dict[str, Callable] = {
    # PyTorch's vectors have NaN at infinity.
    "gelu": _floating(_gelu),
    # PyTorch and SciPy have NaN at infinity.
    "i0": _floating(lambda x: np.where(np.isinf(x), np.inf, special.i0(x))),
    "softsign": _softsign,
    "special_airy_ai": _limits(lambda x: special.airy(x)[0], 0, 0),
    "special_bessel_j0": _limits(special.j0, 0, 0),
    "special_bessel_j1": _limits(special.j1, 0, 0),
    "special_bessel_y0": _limits(special.y0, np.nan, 0),
    "special_bessel_y1": _limits(special.y1, np.nan, 0),
    "special_modified_bessel_i0": _limits(special.i0, np.inf, np.inf),
    "special_modified_bessel_i1": _limits(special.i1, -np.inf, np.inf),
    "special_modified_bessel_k0": _limits(special.k0, np.nan, 0),
    "special_modified_bessel_k1": _limits(special.k1, np.nan, 0),
    "special_scaled_modified_bessel_k0": _limits(special.k0e, np.nan, 0),
    "special_scaled_modified_bessel_k1": _limits(special.k1e, np.nan, 0),
    "special_zeta": _zeta,
    "special_i1": _floating(lambda x: np.where(np.isinf(x), x, special.i1(x))),
}
