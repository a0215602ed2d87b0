"""Finds the polynomial coefficients of aten/math with the Remez exchange.

Usage: python minimax.py > ../polynomials.h; with names: those alone; or: list
Each entry of FITS gives g, the interval and the degree of P(t) ~ g(t), with the
weight that turns |g - P| into the error of the function relative to its result.
Printed are the errors before and after rounding the coefficients to the format.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import mpmath as mp
import numpy as np
from fits import FITS

MANTISSA = {"f": 24, "d": 53}


def round_to(value: mp.mpf, bits: int) -> mp.mpf:
    """The nearest number with that many significant bits."""
    with mp.workprec(bits):
        return +value


def hex_literal(value: mp.mpf, fmt: str) -> str:
    """A C++ literal: hexadecimal, so that nothing is rounded twice."""
    text = float(value).hex()
    head, _, exponent = text.partition("p")
    head = head.rstrip("0").rstrip(".") if "." in head else head
    return f"{head}p{int(exponent)}" + ("f" if fmt == "f" else "")


class Grid:
    """g, its weight and the powers of t on a fixed set of Chebyshev points."""

    def __init__(
        self, g: Callable, weight: Callable, lo: mp.mpf, hi: mp.mpf, degree: int
    ) -> None:
        count = 40 * (degree + 2)
        mid, half = (lo + hi) / 2, (hi - lo) / 2
        # Half-integer phases keep away from removable singularities at the ends.
        self.t = [
            mid - half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count)
            for k in range(count)
        ]
        self.g = np.array([g(t) for t in self.t], dtype=object)
        self.w = np.array([abs(weight(t)) for t in self.t], dtype=object)
        t = np.array(self.t, dtype=object)
        self.powers = np.array([t**k for k in range(degree + 1)], dtype=object)

    def error(self, coefficients: list[mp.mpf]) -> np.ndarray:
        total = -self.g
        for power, c in zip(self.powers, coefficients, strict=True):
            total = total + power * c
        return total * self.w


def exchange(error: np.ndarray, count: int) -> list[int]:
    """The largest alternating extrema, `count` of them."""
    peaks: list[int] = []
    for i, value in enumerate(error):
        if peaks and (value > 0) == (error[peaks[-1]] > 0):
            if abs(value) > abs(error[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        drop = 0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1
        peaks.pop(drop)
    return peaks


def remez(grid: Grid, count: int) -> list[mp.mpf]:
    """The best coefficients, unrounded."""
    size = len(grid.t)
    # Where the weight vanishes no extremum can be: start a little beside.
    usable = [i for i in range(size) if grid.w[i] > max(grid.w) * mp.mpf("1e-3")]
    nodes = [
        usable[min(len(usable) - 1, k * (len(usable) - 1) // count)]
        for k in range(count + 1)
    ]
    best: list[mp.mpf] = []
    for _ in range(40):
        a = mp.matrix(count + 1, count + 1)
        b = mp.matrix(count + 1, 1)
        for row, i in enumerate(nodes):
            for k in range(count):
                a[row, k] = grid.powers[k][i]
            a[row, count] = (-1) ** row / grid.w[i]
            b[row] = grid.g[i]
        x = mp.lu_solve(a, b)
        best = [x[k] for k in range(count)]
        error = grid.error(best)
        new = exchange(error, count + 1)
        if len(new) < count + 1:
            raise ArithmeticError("too few extrema: lower the degree")
        if max(abs(error)) < abs(x[count]) * mp.mpf("1.02"):
            break
        nodes = new
    return best


def fit(name: str) -> tuple[list[mp.mpf], mp.mpf, mp.mpf]:
    """Coefficients, lowest first, and the largest error before and after rounding.

    A split fit has the rest of its rounded first coefficient at the end.
    """
    entry = FITS[name]
    grid = Grid(entry.g, entry.weight, mp.mpf(entry.lo), mp.mpf(entry.hi), entry.degree)
    exact = remez(grid, entry.degree + 1)
    bits = MANTISSA[entry.fmt]
    rounded = [round_to(c, bits) for c in exact]
    rest = round_to(exact[0] - rounded[0], bits)
    used = [rounded[0] + rest, *rounded[1:]] if entry.split else rounded
    printed = [*rounded, rest] if entry.split else rounded
    return printed, max(abs(grid.error(exact))), max(abs(grid.error(used)))


def cpp_function(name: str) -> str:
    """The polynomial as a function of polynomials.h, with its error."""
    coefficients, before, after = fit(name)
    fmt = FITS[name].fmt
    logs = [float(mp.log(e, 2)) for e in (before, after)]
    kind = "float" if fmt == "f" else "double"
    literals = [hex_literal(c, fmt) for c in coefficients]
    lines = [f"// error 2^{logs[0]:.1f}, with rounded coefficients 2^{logs[1]:.1f}"]
    if FITS[name].split:
        *literals, rest = literals
        lines.append(f"TAEDA_FN Pair<{kind}> {name[:-2]}_parts({kind} t) {{")
        lines.append("  return poly_parts(\n      t,")
        literals.insert(0, rest)
    else:
        lines.append(f"TAEDA_FN {kind} {name[:-2]}_poly({kind} t) {{")
        rule = "poly_chain" if FITS[name].chain else "poly"
        lines.append(f"  return {rule}(\n      t,")
    row = "     "
    for i, text in enumerate(literals):
        piece = f" {text}" + ("," if i + 1 < len(literals) else "")
        if len(row) + len(piece) > 80:
            lines.append(row)
            row = "     "
        row += piece
    lines += [row, "  );", "}"]
    return "\n".join(lines) + "\n"


HEADER = """\
// Written by tools/minimax.py; what is fitted stands in tools/fits.py.
// clang-format off
#pragma once

#include <taeda/aten/math/prim.h>

namespace taeda::math {

"""


def main() -> None:
    names = sys.argv[1:]
    if names == ["list"]:
        print(" ".join(FITS))
        return
    body = []
    for name in names or FITS:
        with mp.workdps(60 if FITS[name].fmt == "d" else 40):
            body.append(cpp_function(name))
    text = "\n".join(body)
    print(text if names else HEADER + text + "\n}  // namespace taeda::math", end="\n")


if __name__ == "__main__":
    main()
