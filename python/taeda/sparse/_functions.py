"""Functions of `taeda.sparse` that are more than an operator's own."""

from __future__ import annotations

import taeda
from taeda._C import _sparse as _natives

__all__ = ["log_softmax", "softmax", "spdiags", "sum"]

_VF = taeda._C._VariableFunctions


def sum(input, dim=None, dtype=None):
    """The sum of all elements of a sparse tensor, or along dims.

    Args:
        input: coordinate tensor.
        dim: dims that are added up; all if None.
        dtype: dtype that elements are converted to first.

    Returns:
        A strided tensor where no dim is left that indices name, else a coalesced
        sparse one.
    """
    if dim is None:
        return (
            _VF._sparse_sum(input)
            if dtype is None
            else _VF._sparse_sum(input, dtype=dtype)
        )
    if dtype is None:
        return _VF._sparse_sum(input, dim)
    return _VF._sparse_sum(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """exp(x) / sum(exp(x)) along a dim, over entries alone.

    Args:
        input: coordinate tensor of a floating dtype. dim: where the sums run.
        dtype: dtype that elements are converted to first.

    Returns:
        A sparse tensor with the entries of `input`: what is none counts as minus
        infinity.
    """
    return _natives._sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`.

    Args:
        input: coordinate tensor of a floating dtype. dim: where the sums run.
        dtype: dtype that elements are converted to first.
    """
    return _natives._sparse_log_softmax(input, dim, dtype=dtype)


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix of given diagonals.

    Args:
        diagonals: elements [diagonals, columns]; element j of a row is in column j.
        offsets: the number of each diagonal: 0 the main one, above it positive.
        shape: rows and columns of the result.
        layout: layout of the result; coordinate if None.

    Raises:
        RuntimeError: numbers of diagonals and offsets that differ, or repeat.
    """
    unique = taeda.unique(offsets)
    if unique.numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    known = (None, taeda.sparse_coo, taeda.sparse_csr, taeda.sparse_csc)
    if layout not in known:
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{layout}"
        )
    return _natives._spdiags(diagonals, offsets, tuple(shape), layout)
