"""Sample points of every function of the expression language, for the suites here."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import mpmath
import numpy as np
from scipy import special as scipy_special

from tools.codegen.expr import Expr, to_numpy


def _gamma_quantile_slope(a: float, x: float) -> mpmath.mpf:
    """dx / da at a fixed probability of the gamma distribution."""
    probability = mpmath.diff(lambda t: mpmath.gammainc(t, 0, x, regularized=True), a)
    return -probability * mpmath.gamma(a) * mpmath.exp(x) / mpmath.mpf(x) ** (a - 1)


def _gamma_quantile_curve(a: float, x: float) -> mpmath.mpf:
    return mpmath.diff(lambda t: _gamma_quantile_slope(t, x), a)


def _by_mpmath(function):
    def value(a, x):
        with mpmath.workdps(30):
            return float(function(mpmath.mpf(float(a)), mpmath.mpf(float(x))))

    return np.vectorize(value)


# SciPy's functions, and those of the language that it has not.
special = SimpleNamespace(
    **{k: v for k, v in vars(scipy_special).items() if not k.startswith("_")},
    gamma_quantile_slope=_by_mpmath(_gamma_quantile_slope),
    gamma_quantile_curve=_by_mpmath(_gamma_quantile_curve),
)

_ANY = (-2.3, -0.7, 0.4, 1.9)
_POSITIVE = (0.3, 0.8, 1.7, 4.2)
_UNIT = (-0.9, -0.3, 0.2, 0.7)
_ABOVE_ONE = (1.2, 1.9, 3.3, 6.1)
_OTHER = (1.3, -0.6, 0.9, -1.7)
_Z = (0.6 + 0.4j, -0.8 + 1.1j, 0.3 - 0.9j, -0.4 - 0.5j)
_W = (1.2 - 0.3j, 0.5 + 0.8j, -0.7 + 0.2j, 0.9 + 1.4j)

# Points away from ties and jumps: derivatives there can be compared with differences.
REAL: dict[str, tuple[Sequence[float], ...]] = {
    **dict.fromkeys(
        "exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid erf erfc".split(),
        (_ANY,),
    ),
    **dict.fromkeys("sinc i0 i1 i0e i1e".split(), (_ANY,)),
    **dict.fromkeys("floor ceil trunc round frac sign sgn".split(), (_ANY,)),
    **dict.fromkeys("abs conj real imag angle".split(), (_ANY,)),
    **dict.fromkeys(
        "log log2 log10 log1p sqrt rsqrt lgamma digamma".split(), (_POSITIVE,)
    ),
    **dict.fromkeys("asin acos atanh erfinv".split(), (_UNIT,)),
    **dict.fromkeys(
        "atan2 hypot copysign fmod remainder floor_divide div_trunc".split(),
        (_ANY, _OTHER),
    ),
    **dict.fromkeys(
        "maximum minimum fmax fmin nextafter logaddexp logaddexp2".split(),
        (_ANY, _OTHER),
    ),
    "with_imag": (_ANY, _OTHER),
    **dict.fromkeys("xlogy xlog1py".split(), (_ANY, _POSITIVE)),
    **dict.fromkeys("igamma igammac".split(), (_POSITIVE, (0.9, 0.4, 2.2, 3.1))),
    **dict.fromkeys(
        "erfcx log_ndtr bessel_j0 bessel_j1 spherical_bessel_j0 modified_bessel_i0 "
        "modified_bessel_i1".split(),
        (_ANY,),
    ),
    **dict.fromkeys(
        "bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 "
        "scaled_modified_bessel_k0 scaled_modified_bessel_k1".split(),
        (_POSITIVE,),
    ),
    "ndtri": ((0.1, 0.35, 0.6, 0.93),),
    "acosh": (_ABOVE_ONE,),
    "pow": (_POSITIVE, _OTHER),
    "clamp": (_ANY, (-1.0,) * 4, (1.0,) * 4),
    "polygamma": ((1.0, 2.0, 1.0, 3.0), _POSITIVE),
}
COMPLEX: dict[str, tuple[Sequence[complex], ...]] = {
    **dict.fromkeys(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh".split(),
        (_Z,),
    ),
    **dict.fromkeys(
        "cosh tanh asinh acosh atanh sqrt rsqrt sigmoid".split(),
        (_Z,),
    ),
    **dict.fromkeys("abs sgn conj real imag angle".split(), (_Z,)),
    **dict.fromkeys("pow with_imag".split(), (_Z, _W)),
}
# Functions whose derivatives end here; test/python/distributions has their values, and
# index maps those of `single`; test_special_accuracy.py those of aten/math/shared.h.
LAST = (
    *("gamma_quantile_slope", "gamma_quantile_curve", "beta_quantile_slope", "single"),
    *("airy_ai", "zeta"),
    *(f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he"),
    *("laguerre_polynomial_l", "legendre_polynomial_p"),
)
# Functions of integers, which have no derivative.
INTEGER = ("gcd", "lcm")
PREDICATES = ("is_nan", "is_inf", "is_finite", "signbit")


def evaluate(expr: Expr, values: dict[str, object]) -> np.ndarray:
    """The expression through its NumPy printer."""
    space = {"np": np, "special": special, **values}
    return np.asarray(eval(to_numpy(expr), space))
