"""The errors of torch.special's functions against mpmath, beside PyTorch's.

Usage: PYTHONPATH=python python aten/math/tools/accuracy.py [samples] [name ...]
Prints a table in Markdown: the largest error in ulp of float32 and of float64. Errors
near zeros count in ulp of the envelope that each function names (1 for a number that
the result is added to, the modulus of the Hankel function, ...); arguments are uniform
on each of the intervals, and between them their logarithms are.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.dps = 50


@dataclass(frozen=True)
class Case:
    """A function, its reference, where it is tried, and what its errors count by."""

    reference: Callable
    intervals: tuple[tuple[float, float], ...]
    degrees: tuple[float, ...] = ()
    envelope: Callable | None = None


CASES: dict[str, Case] = {}
EVERY = ((1e-300, 1e300),)


def modulus(order: int) -> Callable:
    return lambda x: abs(mp.hankel1(order, abs(x))) if x else 0


def _y(order: int) -> Callable:
    return lambda x: mp.bessely(order, x)


def airy_envelope(x):
    return mp.hypot(mp.airyai(x), mp.airybi(x)) if x < -2 else 0


for _n in (0, 1):
    CASES[f"bessel_j{_n}"] = Case(
        lambda x, n=_n: mp.besselj(n, x),
        ((0, 20), (-20, 0), (1e-8, 1e4)),
        envelope=modulus(_n),
    )
    CASES[f"bessel_y{_n}"] = Case(
        _y(_n), ((0, 20), (1e-30, 1e4)), envelope=lambda x, n=_n: min(1, modulus(n)(x))
    )
    CASES[f"modified_bessel_i{_n}"] = Case(
        lambda x, n=_n: mp.besseli(n, x), ((-10, 10), (1e-8, 80), (-700, 700))
    )
    CASES[f"modified_bessel_k{_n}"] = Case(
        lambda x, n=_n: mp.besselk(n, x), ((0, 10), (1e-30, 80), (1, 700))
    )
    CASES[f"scaled_modified_bessel_k{_n}"] = Case(
        lambda x, n=_n: mp.besselk(n, x) * mp.exp(x), ((0, 10), (1e-30, 1e30))
    )
CASES["spherical_bessel_j0"] = Case(
    lambda x: mp.sin(x) / x if x else mp.mpf(1),
    ((-30, 30), (1e-8, 1e6)),
    envelope=lambda x: 1 / abs(x) if abs(x) > 1 else 1,
)
CASES["airy_ai"] = Case(
    mp.airyai, ((-20, 10), (-200, 0), (0, 100)), envelope=airy_envelope
)
CASES["erfcx"] = Case(
    lambda x: mp.exp(x * x) * mp.erfc(x), ((-5, 5), (-26.5, 40), (1e-8, 1e30))
)


def _log_ndtr(x):
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def _ndtri(p):
    y = -mp.sqrt(-2 * mp.log(p)) if p < 0.1 else (p - mp.mpf(1) / 2) * 2.5
    if p > 0.9:
        return -_ndtri(1 - p)
    for _ in range(60):
        below = mp.erfc(-y / mp.sqrt(2)) / 2
        step = mp.log(below / p) * below * mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)
        y -= step
        if abs(step) < mp.mpf(10) ** -40:
            break
    return y


CASES["log_ndtr"] = Case(_log_ndtr, ((-6, 6), (-1e3, 37), (1e-8, 1)))
CASES["ndtri"] = Case(_ndtri, ((0, 1), (0.03, 0.97), (1e-300, 0.5)))


def _zeta(q, s):
    """Euler and Maclaurin's formula after 60 terms and more."""
    count = 60 + 2 * int(s)
    total = mp.fsum((q + k) ** -s for k in range(count))
    w = q + count
    total += w ** (1 - s) / (s - 1) + w**-s / 2
    factor = s * w ** (-s - 1)
    for k in range(1, 20):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (w * w)
    return total


CASES["zeta"] = Case(_zeta, ((0, 5), (0.01, 1e3)), (1.01, 1.5, 2, 3, 4.5, 7, 20, 60))


def _chebyshev(kind: int, shifted: bool) -> Callable:
    def value(x, n):
        x = 2 * x - 1 if shifted else x
        before, now = mp.mpf(1), x if kind == 0 else 2 * x - (0, 0, 1, -1)[kind]
        for _ in range(int(n)):
            before, now = now, 2 * x * now - before
        return before

    return value


DEGREES = (1, 2, 3, 5, 8, 13, 30, 100)
for _s, _head in ((False, ""), (True, "shifted_")):
    for _k in range(4):
        CASES[f"{_head}chebyshev_polynomial_{'tuvw'[_k]}"] = Case(
            _chebyshev(_k, _s), (((0, 1) if _s else (-1, 1)), (1, 3)), DEGREES
        )
CASES["legendre_polynomial_p"] = Case(
    lambda x, n: mp.legendre(n, x), ((-1, 1), (1, 3)), DEGREES
)
CASES["laguerre_polynomial_l"] = Case(
    lambda x, n: mp.laguerre(n, 0, x), ((-2, 20),), DEGREES
)
CASES["hermite_polynomial_h"] = Case(
    lambda x, n: mp.hermite(n, x), ((-4, 4),), DEGREES[:-1]
)
CASES["hermite_polynomial_he"] = Case(
    lambda x, n: mp.hermite(n, x / mp.sqrt(2)) * mp.mpf(2) ** (-mp.mpf(n) / 2),
    ((-4, 4),),
    DEGREES[:-1],
)


def arguments(case: Case, count: int, dtype: type) -> Iterator[tuple]:
    """Numbers of the dtype, with a degree where the function has one."""
    draw = random.Random(1)
    least = np.finfo(dtype).tiny
    for low, high in case.intervals:
        for i in range(count):
            if 0 < low and high / low > 50:
                x = float(np.exp(draw.uniform(np.log(low), np.log(high))))
            else:
                x = draw.uniform(low, high)
            if not least < abs(x) < np.finfo(dtype).max:
                continue
            x = float(dtype(x))
            if case.degrees:
                yield x, float(dtype(case.degrees[i % len(case.degrees)]))
            else:
                yield (x,)


def ulps(case: Case, given: list[tuple], found: np.ndarray) -> tuple[float, tuple]:
    """The largest error, and where."""
    information = np.finfo(found.dtype)
    worst = (0.0, ())
    for point, got in zip(given, found, strict=True):
        exact = case.reference(*map(mp.mpf, point))
        size = abs(exact)
        if case.envelope is not None:
            size = max(size, case.envelope(mp.mpf(point[0])))
        if size > float(information.max) or size < float(information.tiny):
            continue
        ulp = mp.mpf(2) ** (int(mp.floor(mp.log(size, 2))) - information.nmant)
        wrong = abs(mp.mpf(float(got)) - exact) / ulp if np.isfinite(got) else mp.inf
        if wrong > worst[0]:
            worst = (float(wrong), point)
    return worst


def called(library, name: str, given: list[tuple], dtype: type) -> np.ndarray:
    """The function of a library with torch's names on all points."""
    columns = [library.from_numpy(np.array(c, dtype)) for c in zip(*given, strict=True)]
    if name == "zeta":
        columns.reverse()
    return getattr(library.special, name)(*columns).numpy()


def main() -> None:
    import taeda
    import torch

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| function | f32 | PyTorch | f64 | PyTorch |\n|---|---|---|---|---|")
    for name in sys.argv[2:] or CASES:
        cells = []
        for dtype in (np.float32, np.float64):
            given = list(arguments(CASES[name], count, dtype))
            for library in (taeda, torch):
                found = called(library, name, given, dtype)
                cells.append(f"{ulps(CASES[name], given, found)[0]:.3g}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
