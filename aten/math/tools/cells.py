"""Fits functions cell by cell and prints ../cells_jy.h and ../cells.h.

Usage: python cells.py jy > ../cells_jy.h and python cells.py rest > ../cells.h
The interval of a table is cut into cells of one width, each with a polynomial about its
middle, or about the zero that lies in it, which then is a zero of the polynomial too.
Each is a Chebyshev series cut off where the rest is below the rounding of the result
(all cells of a table at the same degree).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
from minimax import hex_literal, round_to

mp.mp.dps = 40
NODES = 30
TOLERANCE = mp.mpf(2) ** -56


@dataclass
class Table:
    """f on `count` cells of `width` from `lo` on; `usable` cuts the first one short.

    With `zeros` each row begins with its centre in two parts. The centre of a lone
    cell, or of the first one `at_edge`, is `lo`. A row ends with what is left of its
    first coefficient when that is rounded. Errors count against `floor(x)`, below
    which the result needs no digits, or against |f(x)|.
    """

    f: Callable
    lo: object
    width: object
    count: int
    zeros: bool = False
    usable: object = None
    at_edge: bool = False
    floor: Callable | None = None


TABLES: dict[str, Table] = {}


def chebyshev(g: Callable, lo: mp.mpf, hi: mp.mpf) -> list[mp.mpf]:
    """The coefficients of g's Chebyshev series on [lo, hi]."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / NODES for k in range(NODES)]
    values = [g((lo + hi) / 2 + (hi - lo) / 2 * mp.cos(a)) for a in angles]
    series = []
    for j in range(NODES):
        total = mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True))
        series.append(total * (1 if j == 0 else 2) / NODES)
    return series


def monomials(series: list[mp.mpf], lo: mp.mpf, hi: mp.mpf) -> list[mp.mpf]:
    """The polynomial of a Chebyshev series on [lo, hi] in powers of t itself."""
    scale, shift = 2 / (hi - lo), -(hi + lo) / (hi - lo)

    def times_u(p: list[mp.mpf]) -> list[mp.mpf]:
        found = [shift * c for c in p] + [mp.mpf(0)]
        for k, c in enumerate(p):
            found[k + 1] += scale * c
        return found

    total = [mp.mpf(0)] * len(series)
    before, now = [mp.mpf(0)], [mp.mpf(1)]
    for j, weight in enumerate(series):
        for k, c in enumerate(now):
            total[k] += weight * c
        after = [c * (1 if j == 0 else 2) for c in times_u(now)]
        for k, c in enumerate(before):
            after[k] -= c if j > 0 else 0
        before, now = now, after
    return total


def zero_in(f: Callable, lo: mp.mpf, hi: mp.mpf) -> mp.mpf | None:
    """The zero of f in a cell, or None."""
    if lo == 0 and abs(f(mp.mpf("1e-30"))) < mp.mpf("1e-29"):
        return mp.mpf(0)
    if f(lo) * f(hi) > 0:
        return None
    return mp.findroot(f, (lo, hi), solver="anderson", tol=mp.mpf(10) ** -70)


def cell(table: Table, index: int) -> tuple[mp.mpf, bool, list[mp.mpf], mp.mpf]:
    """Centre, whether it is a zero, Chebyshev series, and what an error counts by."""
    lo = mp.mpf(table.lo) + index * mp.mpf(table.width)
    hi = lo + mp.mpf(table.width)
    centre = (lo + hi) / 2
    zero = zero_in(table.f, lo, hi) if table.zeros else None
    first = mp.mpf(table.usable) if index == 0 and table.usable else lo
    middle = (first + hi) / 2
    size = abs((table.floor or table.f)(middle))
    if zero is None:
        if index == 0 and (table.at_edge or table.count == 1):
            centre = lo
        return centre, False, chebyshev(table.f, first, hi), size
    return zero, True, chebyshev(lambda x: table.f(x) / (x - zero), first, hi), size


def parts(value: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """A double and the rest."""
    high = round_to(value, 53)
    return high, value - high


def rows_of(table: Table) -> tuple[list[list[mp.mpf]], float]:
    """The numbers of each row, and the largest error."""
    cells = [cell(table, i) for i in range(table.count)]
    terms, worst = 1, mp.mpf(0)
    for _, _, series, size in cells:
        rest = [mp.fsum(map(abs, series[k:])) / size for k in range(NODES + 1)]
        terms = max(terms, next(k for k in range(NODES + 1) if rest[k] < TOLERANCE))
    rows = []
    for index, (centre, is_zero, series, size) in enumerate(cells):
        lo = mp.mpf(table.lo) + index * mp.mpf(table.width)
        first = mp.mpf(table.usable) if index == 0 and table.usable else lo
        hi = lo + mp.mpf(table.width)
        worst = max(worst, mp.fsum(map(abs, series[terms:])) / size)
        powers = monomials(series[:terms], first - centre, hi - centre)
        first = powers[0] - round_to(powers[0], 53)
        if not table.zeros:
            rows.append([*powers, first])
        elif is_zero:
            rows.append([*parts(centre), mp.mpf(0), *powers, mp.mpf(0)])
        else:
            rows.append([*parts(centre), *powers, mp.mpf(0), first])
    return rows, float(mp.log(worst, 2))


def cpp_table(name: str) -> str:
    """One table as C++."""
    rows, error = rows_of(TABLES[name])
    constant = "".join(part.title() for part in name.split("_"))
    lines = [
        f"// error 2^{error:.1f}",
        f"TAEDA_TABLE double k{constant}[][{len(rows[0])}] = {{",
    ]
    for row in rows:
        line = "   "
        for i, value in enumerate(row):
            text = hex_literal(round_to(value, 53), "d") if value else "0"
            piece = f" {'{' if i == 0 else ''}{text}"
            piece += "}," if i + 1 == len(row) else ","
            if len(line) + len(piece) > 80:
                lines.append(line)
                line = "    "
            line += piece
        lines.append(line)
    return "\n".join([*lines, "};"]) + "\n"


HEADER = """\
// Written by tools/cells.py; what is fitted stands in tools/cell_fits.py.
// clang-format off
#pragma once

#include <taeda/aten/math/prim.h>

namespace taeda::math {

"""


def main() -> None:
    import cell_fits

    TABLES.update(cell_fits.JY if sys.argv[1] == "jy" else cell_fits.REST)
    text = "\n".join(map(cpp_table, TABLES))
    print(HEADER + text + "\n}  // namespace taeda::math")


if __name__ == "__main__":
    main()
