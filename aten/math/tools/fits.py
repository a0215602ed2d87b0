"""The approximations of aten/math: what is fitted, where, to which degree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60


@dataclass
class Fit:
    """P(t) ~ g(t) on [lo, hi]; weight(t) makes the error relative to the result.

    With split, P is printed as an unevaluated sum of two parts; with chain, by plain
    Horner's rule, where even and odd powers would cancel.
    """

    fmt: str
    g: Callable
    lo: object
    hi: object
    degree: int
    weight: Callable
    split: bool = False
    chain: bool = False


FITS: dict[str, Fit] = {}


def add(
    name: str, degrees: dict[str, int], g: Callable, lo, hi, weight, **form: bool
) -> None:
    """Registers NAME_f and NAME_d (the formats that `degrees` names)."""
    for fmt, degree in degrees.items():
        FITS[f"{name}_{fmt}"] = Fit(fmt, g, lo, hi, degree, weight, **form)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
HALF = mp.mpf("0.5")

# e^r = 1 + r + r^2 P(r)
add(
    "exp",
    {"f": 4, "d": 9},
    lambda r: (mp.expm1(r) - r) / r**2,
    -HALF_LN2,
    HALF_LN2,
    lambda r: r**2 / mp.exp(r),
)
# 2^r = 1 + r P(r)
add(
    "exp2",
    {"f": 5, "d": 11},
    lambda r: mp.expm1(r * mp.log(2)) / r,
    -HALF - mp.mpf("1e-3"),
    HALF + mp.mpf("1e-3"),
    lambda r: r / mp.mpf(2) ** r,
)
# log(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f < sqrt(2)
add(
    "log",
    {"f": 8},
    lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
    mp.sqrt(HALF) - 1,
    mp.sqrt(2) - 1,
    lambda f: f**3 / mp.log1p(f),
)


def _log_ratio(z):
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


# log(1 + f) = 2 s + s z P(z), s = f / (2 + f), z = s^2
add(
    "log_s",
    {"f": 2, "d": 6},
    _log_ratio,
    0,
    (mp.sqrt(2) - 1) ** 4 * mp.mpf("1.001"),
    lambda z: z / 2,
)
QUARTER_PI2 = (mp.pi / 4) ** 2 * mp.mpf("1.01")
# sin r = r + r z P(z), z = r^2
add(
    "sin",
    {"f": 2, "d": 5},
    lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    QUARTER_PI2,
    lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
)
# cos r = 1 - z / 2 + z^2 P(z)
add(
    "cos",
    {"f": 2, "d": 5},
    lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
    0,
    QUARTER_PI2,
    lambda z: z * z / mp.cos(mp.sqrt(z)),
)
# tan r = r + r z P(z)
add(
    "tan",
    {"f": 6, "d": 14},
    lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    QUARTER_PI2,
    lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)),
)
# asin x = x + x z P(z), z = x^2 <= 1/4
add(
    "asin",
    {"f": 5, "d": 12},
    lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    mp.mpf("0.25"),
    lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)),
)
# atan x = x + x z P(z), |x| <= 1
add(
    "atan",
    {"f": 9, "d": 21},
    lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    1,
    lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)),
    chain=True,
)
# tanh x = x + x z P(z), |x| <= 0.625
add(
    "tanh",
    {"f": 5, "d": 11},
    lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    mp.mpf("0.625") ** 2,
    lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
)
# sinh x = x + x z P(z), |x| <= 1
add(
    "sinh",
    {"f": 3, "d": 6},
    lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
    0,
    1,
    lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)),
)
# erf x = x + x P(z), |x| <= 1
add(
    "erf",
    {"f": 6, "d": 12},
    lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
    0,
    1,
    lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
)

# 1 - erf x = e^P(x - 1), 1 <= x <= 4 (beyond, erf is one in float)
add(
    "erf_log",
    {"f": 7},
    lambda t: mp.log(mp.erfc(t + 1)),
    0,
    3,
    lambda t: mp.erfc(t + 1) / mp.erf(t + 1),
)


def _reciprocal(g: Callable) -> Callable:
    return lambda t: 1 / g(t)


def _erfc_ratio(k: int) -> Callable:
    def ratio(t):
        x = k * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    return ratio


# erfc x = e^(-x^2) P(t) / (1 + 2 x), t = (x - k) / (x + k), x >= 0.5
# (the form of Shepherd & Laframboise, Math. Comp. 36 (1981), 249)
for _fmt, _k, _degree, _largest in (("f", 2, 10, "10.1"), ("d", 4, 22, "27.3")):
    add(
        "erfc",
        {_fmt: _degree},
        _erfc_ratio(_k),
        (HALF - _k) / (HALF + _k),
        (mp.mpf(_largest) - _k) / (mp.mpf(_largest) + _k),
        _reciprocal(_erfc_ratio(_k)),
        split=True,
    )
# log2(1 + f) = s P(z), s = f / (2 + f), z = s^2; 2^r = P(r): the two halves of
# a float power, which is computed in double
add(
    "pow_log2",
    {"d": 5},
    lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2),
    0,
    (mp.sqrt(2) - 1) ** 4 * mp.mpf("1.001"),
    lambda z: mp.sqrt(z) / mp.atanh(mp.sqrt(z)) / 2,
)
add(
    "pow_exp2",
    {"d": 7},
    lambda r: mp.mpf(2) ** r,
    -HALF - mp.mpf("1e-3"),
    HALF + mp.mpf("1e-3"),
    lambda r: mp.mpf(2) ** -r,
)


def _pow_atanh(z):
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2 - 2 * z / 3) / z**2


# log(1 + f) = 2 s + s z (2/3 + z P(z)): the power in double
add(
    "pow_atanh",
    {"d": 7},
    _pow_atanh,
    0,
    (mp.sqrt(2) - 1) ** 4 * mp.mpf("1.001"),
    lambda z: z * z,
)


def _erfinv_ratio(w):
    """erfinv(x) / x as a function of w = -log(1 - x^2), by Newton's method."""
    if w < mp.mpf("1e-30"):
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    complement = mp.exp(-w) / (1 + x)
    y = mp.sqrt(w) if w > 1 else x
    for _ in range(60):
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-y * y)
        step = (mp.erfc(y) - complement) / slope
        y -= step
        if abs(step) < abs(y) * mp.mpf(10) ** -45:
            break
    return y / x


def _erfinv_root(middle: str) -> Callable:
    return lambda t: _erfinv_ratio((t + mp.mpf(middle)) ** 2)


# erfinv x = x P(w - 2.5), w = -log(1 - x^2) <= 5, and x P(sqrt w - m) beyond,
# after M. Giles, "Approximating the erfinv function", GPU Computing Gems 2
# (2010); in double the second is the start of a Halley step.
add(
    "erfinv",
    {"f": 10, "d": 21},
    lambda t: _erfinv_ratio(t + mp.mpf("2.5")),
    mp.mpf("-2.5"),
    mp.mpf("2.5"),
    lambda t: 1 / _erfinv_ratio(t + mp.mpf("2.5")),
    split=True,
)
for _fmt, _middle, _largest in (("f", "3.125", "4.125"), ("d", "4.25", "6.25")):
    add(
        "erfinv_tail",
        {_fmt: 10},
        _erfinv_root(_middle),
        mp.sqrt(5) - mp.mpf(_middle),
        mp.mpf(_largest) - mp.mpf(_middle),
        _reciprocal(_erfinv_root(_middle)),
        split=True,
    )
# log gamma(2 + t) = t P(t), |t| <= 1/2
add(
    "lgamma",
    {"d": 19},
    lambda t: mp.loggamma(2 + t) / t,
    -HALF,
    HALF,
    lambda t: t / mp.loggamma(2 + t),
)


def _stirling(y):
    w = 1 / mp.sqrt(y)
    main = (w - HALF) * mp.log(w) - w + mp.log(2 * mp.pi) / 2
    return (mp.loggamma(w) - main) * w


def _digamma(y):
    w = 1 / mp.sqrt(y)
    return (mp.log(w) - 1 / (2 * w) - mp.digamma(w)) / y


# Stirling's series for w >= 8, y = 1 / w^2:
# log gamma(w) = (w - 1/2) log w - w + log(2 pi) / 2 + P(y) / w
add("stirling", {"d": 6}, _stirling, mp.mpf("1e-12"), mp.mpf(1) / 64, lambda y: 1)
# digamma(w) = log w - 1 / (2 w) - y P(y)
add("digamma", {"d": 6}, _digamma, mp.mpf("1e-12"), mp.mpf(1) / 64, lambda y: y)


def _trigamma(y):
    w = 1 / mp.sqrt(y)
    return (mp.psi(1, w) - 1 / w - y / 2) * w / y


# trigamma(w) = 1 / w + y / 2 + y P(y) / w
add(
    "trigamma",
    {"d": 7},
    _trigamma,
    mp.mpf("1e-12"),
    mp.mpf(1) / 64,
    lambda y: y,
)
# I0(x) = P(x^2 / 4), x <= 8; and e^x / sqrt(x) P(8 / x - 1/2) beyond
add(
    "i0",
    {"f": 9, "d": 15},
    lambda z: mp.besseli(0, 2 * mp.sqrt(z)),
    0,
    16,
    lambda z: 1 / mp.besseli(0, 2 * mp.sqrt(z)),
)


def _i0_tail(t):
    x = 8 / (t + HALF)
    return mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x)


add(
    "i0_tail",
    {"f": 6, "d": 26},
    _i0_tail,
    -HALF + mp.mpf("1e-4"),
    HALF,
    lambda t: 1 / _i0_tail(t),
)
