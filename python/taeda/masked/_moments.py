"""Means and variances of the elements that are not masked out."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._functions import sum
from ._identity import input_mask, parts
from ._layouts import of_layouts

__all__ = ["mean", "std", "var"]

_Dims = int | tuple | list | None


def _counted(input: Tensor, mask: Tensor | None) -> tuple:
    """Data, and a mask that is there."""
    data, mask = parts(input, mask)
    if data.layout != taeda.strided:
        raise ValueError(
            f"masked std/var expects strided tensor (got {data.layout} tensor)"
        )
    if mask is None:
        return data, taeda.ones(data.shape, dtype=taeda.bool, device=data.device)
    return data, input_mask(data, mask)


def _is_inexact(dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


@of_layouts("sparse_csr")
def mean(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Means of the elements that are not masked out; NaN where there are none."""
    source = "Input" if dtype is None else "Optional"
    dtype = dtype or input.dtype
    if not _is_inexact(dtype):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a "
            f"floating point or complex dtype. Got: {dtype}"
        )
    data, valid = _counted(input, mask)
    count = sum(valid, dim, keepdim=keepdim)
    return sum(data, dim, keepdim=keepdim, dtype=dtype, mask=valid) / count


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased in (None, True) else 0.0
    data, valid = _counted(input, mask)
    if dtype is None:
        dtype = data.dtype if _is_inexact(data.dtype) else taeda.float32
    compute = dtype if _is_inexact(dtype) else taeda.float32
    count = sum(valid, dim, keepdim=True)
    center = sum(data, dim, keepdim=True, dtype=dtype, mask=valid) / count
    x = data - center
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=compute, mask=valid)
    count = count if keepdim else count.reshape(total.shape)
    if correction != 0:
        real = taeda.empty(0, dtype=compute).abs().dtype
        count = count.to(real) - correction
        count = taeda.maximum(count, count.new_zeros([]))
    return (total / count).to(dtype=dtype)


def var(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | float | None = None,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Variances of the elements that are not masked out; NaN where there are none."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Square roots of `var`."""
    out = _variance(input, dim, unbiased, correction, keepdim, dtype, mask)
    return taeda.sqrt(out)
