"""How far two computations of one value may be apart: from the dtype and the work."""

from __future__ import annotations

# The distance from 1 to the next number: 2 ** -(bits of the fraction).
EPSILON = {
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}


def rounding(dtype: str, steps: int) -> float:
    """The relative error that `steps` roundings one after the other can add up to.

    gamma_n = n u / (1 - n u) with u = eps / 2: Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd edition, lemma 3.1. A sum of n terms has n - 1 steps; a
    complex operation counts as four.
    """
    work = steps * EPSILON[dtype] / 2
    return work / (1 - work)
