"""Decompositions of matrices of low rank, by random projections.

N. Halko, P. Martinsson and J. Tropp, "Finding structure with randomness", 2009.
"""

from __future__ import annotations

import taeda

__all__ = ["pca_lowrank", "svd_lowrank"]


def _basis(a, q: int, niter: int):
    """Orthonormal columns that nearly span those of `a`."""
    random = taeda.randn(a.shape[-1], q, dtype=a.dtype, device=a.device)
    found = taeda.linalg.qr(a @ random).Q
    for _ in range(niter):
        rows = taeda.linalg.qr(a.mH @ found).Q
        found = taeda.linalg.qr(a @ rows).Q
    return found


def svd_lowrank(A, q: int | None = 6, niter: int | None = 2, M=None) -> tuple:
    """(U, S, V) with A close to U diag(S) V^H.

    Args:
        A: (..., m, n).
        q: the number of columns of U and V.
        niter: how often the random subspace is refined.
        M: subtracted from A first; a sparse A becomes strided then.
    """
    a = A if M is None else A.to_dense() - M
    wide = a.shape[-2] < a.shape[-1]
    tall = a.mH if wide else a
    basis = _basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    # A sparse factor stands on the left.
    u, s, vh = taeda.linalg.svd((tall.mH @ basis).mH, full_matrices=False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(A, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """(U, S, V) of the principal components of A's columns.

    Args:
        A: (..., m, n), samples in rows.
        q: the number of components; at most 6 when absent.
        center: subtract the columns' means first.
        niter: how often the random subspace is refined.

    Raises:
        ValueError: q lies outside of 0 to min(m, n), or niter is negative.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than "
            f"min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A.to_dense()
        A = A - A.mean(dim=-2, keepdim=True)
    return svd_lowrank(A, q, niter=niter)
