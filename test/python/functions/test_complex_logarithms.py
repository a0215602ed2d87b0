"""Logarithms of complex numbers from the smallest to the largest."""

from __future__ import annotations

import cmath

import pytest
import taeda


@pytest.mark.parametrize("name", ["log", "log10", "log2", "log1p"])
@pytest.mark.parametrize("angle", [0.0, 0.7, 3.1])
def test_no_size_is_too_large(name, angle):
    sizes = [10.0**e for e in range(-37, 39)]
    numbers = [cmath.rect(size, angle) for size in sizes]
    found = getattr(taeda, name)(taeda.tensor(numbers, dtype=taeda.complex64))
    unit = {"log10": 10.0, "log2": 2.0}.get(name, cmath.e)
    wanted = [cmath.log(1 + z if name == "log1p" else z, unit) for z in numbers]
    small = 8 if name == "log1p" else 0  # cmath has no log1p: its digits are lost
    for got, want in list(zip(found.tolist(), wanted, strict=True))[small * 5 :]:
        assert got == pytest.approx(want, rel=1e-5, abs=1e-6)
