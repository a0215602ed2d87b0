"""The largest singular value by power iteration (von Mises and Pollaczek-Geiringer)."""

from __future__ import annotations

import taeda

from .. import functional as F


def as_matrix(weight, dim: int):
    """`weight` as a matrix whose rows are its dimension `dim`."""
    return weight.movedim(dim, 0).flatten(1)


def start_vectors(matrix, eps: float) -> list:
    """Random unit vectors to begin with, left and right."""
    return [
        F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps)
        for size in matrix.size()
    ]


def iterate(matrix, left, right, count: int, eps: float) -> None:
    """Improve both vectors in place: left by W right, then right by W^H left."""
    steps = ((matrix, right, left), (matrix.mH, left, right))
    with taeda.no_grad():
        for _ in range(count):
            for factor, source, target in steps:
                F.normalize(taeda.mv(factor, source), dim=0, eps=eps, out=target)
