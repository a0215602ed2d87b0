"""Gradient checks of functions of sparse tensors."""

from __future__ import annotations

import taeda
from taeda.sparse._text import named_parts

__all__ = ["as_sparse_gradcheck"]


def _is_sparse(value) -> bool:
    return isinstance(value, taeda.Tensor) and value.layout is not taeda.strided


def _with_all_entries(tensor):
    """The same values, with every element an entry: what `masked=False` varies."""
    batch = tensor.dim() - tensor.sparse_dim() - tensor.dense_dim()
    everywhere = taeda.ones(tensor.shape, dtype=tensor.dtype)
    if tensor.layout is taeda.sparse_coo:
        mask = everywhere.to_sparse(tensor.sparse_dim())
    else:
        block = tuple(tensor._values().shape[batch + 1 : batch + 3])
        blocked = tensor.layout in (taeda.sparse_bsr, taeda.sparse_bsc)
        mask = everywhere.to_sparse(
            layout=tensor.layout,
            blocksize=block if blocked else None,
            dense_dim=tensor.dense_dim(),
        )
    return tensor.detach().to_dense().sparse_mask(mask)


def _rebuilt(tensor, values):
    """A sparse tensor with the entries of another and values that have history."""
    *places, _ = (part for _, part in named_parts(tensor))
    if tensor.layout is taeda.sparse_coo:
        return taeda.sparse_coo_tensor(
            *places, values, tensor.shape, is_coalesced=tensor.is_coalesced()
        )
    return taeda.sparse_compressed_tensor(
        *places, values, tensor.shape, layout=tensor.layout
    )


def as_sparse_gradcheck(gradcheck):
    """A gradient check that takes sparse tensors, made of one that does not.

    Args:
        gradcheck: `taeda.autograd.gradcheck` or a function called like it.

    Returns:
        A function of the same arguments and `masked`: True varies the entries of
        sparse inputs alone, False all of their elements.
    """

    def sparse_gradcheck(function, inputs, masked: bool = False, **options):
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        patterns, flat = [], []
        for value in given:
            if not (_is_sparse(value) and value.requires_grad):
                patterns.append(None)
                flat.append(value)
                continue
            pattern = value.detach() if masked else _with_all_entries(value)
            if pattern.is_sparse:
                pattern = pattern.coalesce()
            patterns.append(pattern)
            flat.append(pattern._values().clone().requires_grad_())

        def of_values(*values):
            arguments = [
                value if pattern is None else _rebuilt(pattern, value)
                for pattern, value in zip(patterns, values, strict=True)
            ]
            results = function(*arguments)
            several = isinstance(results, (tuple, list))
            strided = tuple(
                r.to_dense(masked_grad=masked) if _is_sparse(r) else r
                for r in (results if several else (results,))
            )
            return strided if several else strided[0]

        return gradcheck(of_values, tuple(flat), **options)

    return sparse_gradcheck
