"""Masked reductions of sparse tensors, whose results have the input's layout."""

from __future__ import annotations

from functools import wraps

import taeda

from ._identity import input_mask

__all__ = ["of_layouts"]


def of_layouts(*layouts: str):
    """Make a reduction of strided tensors one of sparse tensors as well.

    The elements that a sparse tensor does not store are zeros, there unless the mask
    says otherwise. Where no element counts the result is 0, and zeros are not stored.

    Args:
        layouts: those that are taken beside `strided`.

    Raises:
        ValueError: another layout, or no mask: most zeros would count.
        RuntimeError: a compressed tensor that would lose a dim.
    """

    def decorator(function):
        name = function.__name__

        @wraps(function)
        def reduction(input, dim=None, *, keepdim=False, dtype=None, mask=None):
            layout = str(input.layout).rpartition(".")[2]
            options = {"keepdim": keepdim, "dtype": dtype}
            if layout == "strided":
                return function(input, dim, mask=mask, **options)
            _check(name, input, layout, layouts, keepdim, mask)
            return _of_sparse(function, input, dim, mask, options)

        return reduction

    return decorator


def _check(name: str, input, layout: str, layouts, keepdim, mask) -> None:
    if layout not in layouts:
        taken = " or ".join(("strided", *layouts))
        raise ValueError(
            f"masked {name} expects {taken} tensor (got {input.layout} tensor)"
        )
    if mask is None and name != "sum":
        raise ValueError(
            f"masked {name} expects explicit mask for {layout} tensor input"
        )
    if layout == "sparse_csr" and not keepdim:
        raise RuntimeError(
            f"masked {name}: reduction operations on CSR tensors with keepdim=False is "
            "unsupported"
        )


def _of_sparse(function, input, dim, mask, options: dict):
    data = input.to_dense()
    if mask is None:
        valid = taeda.ones_like(data, dtype=taeda.bool)
    else:
        valid = input_mask(data, mask)
    found = function(data, dim, mask=valid, **options)
    if dim is None or dim in ((), []):
        dim = tuple(range(data.ndim))
    there = taeda.any(valid, dim, bool(options["keepdim"])).reshape(found.shape)
    found = found.masked_fill(~there, 0)
    if input.layout == taeda.sparse_csr:
        return found.to_sparse_csr()
    return found.to_sparse()
