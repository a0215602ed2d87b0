"""Independent references of pointwise operators, as functions of NumPy arrays.

An operator that PyTorch has under the same name needs no entry: PyTorch is its
reference.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy import special

REFERENCES: dict[str, Callable] = {
    # PyTorch has NaN at infinity.
    "i0": special.i0,
    "special_i1": special.i1,
}
