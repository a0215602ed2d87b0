"""Independent references of pointwise operators, as functions of NumPy arrays.

An operator that PyTorch has under the same name needs no entry: PyTorch is its
reference.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
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


@np.vectorize
def _gamma_quantile_slope(a: float, x: float) -> float:
    """-(dP / da) / (dP / dx) of the regularised gamma function, by mpmath."""
    if not (a > 0 and x >= 0) or np.isinf(x):
        return np.nan
    with mpmath.workdps(40):
        a, x, step = mpmath.mpf(float(a)), mpmath.mpf(float(x)), mpmath.mpf(10) ** -13
        if x == 0:
            return 0.0

        def below(shape):
            return mpmath.gammainc(shape, 0, x, regularized=True)

        slope = (below(a + step) - below(a - step)) / (2 * step)
        density = x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
        return float(-slope / density)


REFERENCES: dict[str, Callable] = {
    # PyTorch approximates it to 1e-3.
    "_standard_gamma_grad": lambda a, x: _gamma_quantile_slope(a, x).astype(a.dtype),
    # PyTorch and SciPy have NaN at infinity.
    "i0": _floating(lambda x: np.where(np.isinf(x), np.inf, special.i0(x))),
    "softsign": _softsign,
    "special_i1": _floating(lambda x: np.where(np.isinf(x), x, special.i1(x))),
}
