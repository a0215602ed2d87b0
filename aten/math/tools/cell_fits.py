"""What cells.py fits: Bessel and Airy functions and the normal quantile."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
from cells import Table

JY: dict[str, Table] = {}
REST: dict[str, Table] = {}
EIGHTH = mp.mpf(1) / 8


def envelope(order: int) -> Callable:
    """The modulus of the Hankel function, or 1 where it is larger."""
    return lambda x: min(1, abs(mp.hankel1(order, x))) if x > 0 else mp.mpf(1)


def small_y(order: int) -> Callable:
    """What is left of Y, of order 1 over x, when its logarithm and its pole are out."""

    def rest(z):
        x = mp.sqrt(z)
        found = mp.bessely(order, x) - 2 / mp.pi * mp.log(x) * mp.besselj(order, x)
        return found if order == 0 else (found + 2 / (mp.pi * x)) / x

    return rest


def small_k(order: int) -> Callable:
    """The same of K."""

    def rest(z):
        x = mp.sqrt(z)
        sign = 1 if order == 0 else -1
        found = mp.besselk(order, x) + sign * mp.log(x) * mp.besseli(order, x)
        return found if order == 0 else (found - 1 / x) / x

    return rest


def small_i(order: int) -> Callable:
    """I, of order 1 over x."""

    def value(z):
        x = mp.sqrt(z)
        return mp.besseli(order, x) / (1 if order == 0 else x)

    return value


def polar(order: int) -> Callable:
    """The Hankel function without its main term: e^(i (phase of DLMF 10.17.5))."""

    def value(y):
        x = 1 / mp.sqrt(y)
        turn = mp.expj(-(x - (2 * order + 1) * mp.pi / 4))
        return mp.hankel1(order, x) * turn * mp.sqrt(mp.pi * x / 2), x

    return value


def polar_airy(y):
    zeta = 1 / mp.sqrt(y)
    x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    value = mp.airybi(-x) + 1j * mp.airyai(-x)
    return value * mp.expj(-(zeta + mp.pi / 4)) * mp.sqrt(mp.pi) * x**0.25, zeta


def add_polar(
    tables: dict[str, Table], name: str, value: Callable, last, scale
) -> None:
    """Modulus, times scale, and phase, times the argument, on (0, last]."""

    def phase(y):
        number, argument = value(y)
        return mp.arg(number) * argument

    tables[f"{name}_modulus"] = Table(lambda y: abs(value(y)[0]) * scale, 0, last, 1)
    tables[f"{name}_phase"] = Table(phase, 0, last, 1)


# J and Y: cells of width 1 up to 16, beyond the polar form (DLMF 10.18).
for _order in (0, 1):
    JY[f"bessel_j{_order}"] = Table(
        lambda x, n=_order: mp.besselj(n, x),
        *(0, 1, 16, True),
        at_edge=True,
        floor=envelope(_order),
    )
for _order in (0, 1):
    JY[f"bessel_y{_order}"] = Table(
        lambda x, n=_order: mp.bessely(n, x), 2, 1, 14, True, floor=envelope(_order)
    )
for _order in (0, 1):
    JY[f"small_y{_order}"] = Table(small_y(_order), 0, 4, 1)
for _order in (0, 1):
    add_polar(JY, f"hankel{_order}", polar(_order), mp.mpf(2) ** -8, mp.sqrt(2 / mp.pi))

# I of x^2 up to 1; I e^-x: cells of width 1 up to 8; beyond, times sqrt(x), in 1 / x.
# K e^x likewise.
for _order in (0, 1):
    REST[f"scaled_i{_order}"] = Table(
        lambda x, n=_order: mp.besseli(n, x) * mp.exp(-x), 1, 1, 7
    )
for _order in (0, 1):
    REST[f"far_i{_order}"] = Table(
        lambda s, n=_order: mp.besseli(n, 1 / s) * mp.exp(-1 / s) / mp.sqrt(s),
        0,
        EIGHTH / 4,
        4,
    )
for _order in (0, 1):
    REST[f"small_i{_order}"] = Table(small_i(_order), 0, 1, 1)
for _order in (0, 1):
    REST[f"small_k{_order}"] = Table(small_k(_order), 0, 1, 1)
for _order in (0, 1):
    REST[f"far_k{_order}"] = Table(
        lambda s, n=_order: mp.besselk(n, 1 / s) * mp.exp(1 / s) / mp.sqrt(s),
        0,
        EIGHTH,
        8,
    )


def _decaying(s):
    """x^(1/4) e^zeta Ai(x), s = 1 / zeta, zeta = 2/3 x^(3/2)."""
    zeta = 1 / s
    x = (3 * zeta / 2) ** (mp.mpf(2) / 3)
    return x**0.25 * mp.exp(zeta) * mp.airyai(x)


def _airy_envelope(x):
    return mp.hypot(mp.airyai(x), mp.airybi(x)) if x < 0 else mp.airyai(x)


# Ai: cells of width 1/2 on [-12, 2); beyond, decaying to the right (DLMF 9.7.5), polar
# to the left (9.8).
REST["airy_ai"] = Table(mp.airyai, -12, mp.mpf("0.5"), 28, True, floor=_airy_envelope)
REST["airy_decaying"] = Table(_decaying, 0, EIGHTH, 5)
add_polar(REST, "airy", polar_airy, mp.mpf(1) / 767, 1 / mp.sqrt(mp.pi))


def _quantile(p):
    """The normal quantile, by Newton's method on the logarithm of the probability."""
    y = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else (p - mp.mpf(1) / 2) * 2.5
    for _ in range(60):
        below = mp.erfc(-y / mp.sqrt(2)) / 2
        slope = mp.exp(-y * y / 2) / mp.sqrt(2 * mp.pi) / below
        step = mp.log(below / p) / slope
        y -= step
        if abs(step) < mp.mpf(10) ** -30:
            break
    return y


def _quantile_tail(s):
    """r (r - |quantile|), where r = 1 / s = sqrt(-2 log p)."""
    return (1 / s + _quantile(mp.exp(-1 / (2 * s * s)))) / s


REST["quantile"] = Table(_quantile, EIGHTH / 2, EIGHTH / 2, 7, True)
REST["quantile_tail"] = Table(_quantile_tail, 0, EIGHTH / 2, 7, usable=mp.mpf("0.0258"))
