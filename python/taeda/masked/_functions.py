"""Reductions and normalisations without the masked elements.

Each is the operator of its name on data whose masked elements were replaced by the
identity that the operator's record states.
"""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._identity import filled
from ._layouts import of_layouts

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "sum",
]

_Dims = int | tuple | list | None


def dims_of(dim: _Dims, ndim: int) -> tuple[int, ...]:
    """Dims as sorted numbers from the left; all for None and ()."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    count = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -count <= d < count:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-count}, "
                f"{count - 1}], but got {d})"
            )
        found.append(d % count)
    return tuple(sorted(found))


def place_of(dim: _Dims, ndim: int) -> int:
    """The first of the dims, which a scan goes along."""
    if dim is not None and not isinstance(dim, int) and len(dim) == 0:
        raise IndexError("expected a dim, got ()")
    return dims_of(dim, ndim)[0]


@of_layouts("sparse_coo", "sparse_csr")
def sum(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Sums of the elements that are not masked out; 0 where there are none.

    Example:
        >>> x, mask = taeda.tensor([1, 2, 3]), taeda.tensor([True, False, True])
        >>> taeda.masked.sum(x, mask=mask)
        tensor(4)
    """
    data = filled("sum", input, mask)
    return taeda.sum(data, dims_of(dim, data.ndim), bool(keepdim), dtype=dtype)


@of_layouts("sparse_coo", "sparse_csr")
def prod(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Products of the elements that are not masked out; 1 where there are none."""
    data = filled("prod", input, mask)
    # As in PyTorch an empty list names no dims here, and an empty tuple all of them.
    dims = dims_of(dim, data.ndim) if dim != [] else ()
    if dtype is None and not (data.is_floating_point() or data.is_complex()):
        dtype = taeda.int64
    out = data if dtype is None else data.to(dtype=dtype)
    for d in reversed(dims):
        out = out.prod(dim=d, keepdim=bool(keepdim))
    return out


def _scan(name: str, input: Tensor, dim: int, dtype, mask) -> Tensor:
    data = filled(name, input, mask)
    dtype = dtype or data.dtype
    place = place_of(dim, data.ndim)
    return getattr(taeda, name)(data, place, dtype=dtype).to(dtype=dtype)


def cumsum(
    input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Sums along dim of the elements so far, without the masked ones."""
    return _scan("cumsum", input, dim, dtype, mask)


def cumprod(
    input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Products along dim of the elements so far, without the masked ones."""
    return _scan("cumprod", input, dim, dtype, mask)


def _extremum(name: str, input: Tensor, dim, keepdim, dtype, mask) -> Tensor:
    data = filled(name, input, mask)
    out = getattr(taeda, name)(data, dim, bool(keepdim))
    return out.to(dtype=dtype or data.dtype)


@of_layouts("sparse_coo", "sparse_csr")
def amax(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The largest elements that are not masked out; the dtype's lowest for none."""
    return _extremum("amax", input, dims_of(dim, input.ndim), keepdim, dtype, mask)


@of_layouts("sparse_coo", "sparse_csr")
def amin(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The smallest elements that are not masked out; the dtype's highest for none."""
    return _extremum("amin", input, dims_of(dim, input.ndim), keepdim, dtype, mask)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the largest elements are, in the input's dtype unless dtype is given."""
    return _extremum("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the smallest elements are, in the input's dtype unless dtype is given."""
    return _extremum("argmin", input, dim, keepdim, dtype, mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower medians of the elements that are not masked out; NaN for none.

    Raises:
        ValueError: there are none in some row, and the dtype has no NaN.
    """
    from ._identity import input_mask, parts

    data, mask = parts(input, mask)
    dtype = dtype or data.dtype
    place = place_of(dim, data.ndim)
    floating = data.is_floating_point()
    values = data if floating else data.to(dtype=taeda.float32)
    if mask is not None:
        # nanmedian passes over NaN.
        values = values.masked_fill(~input_mask(data, mask), float("nan"))
    out = taeda.nanmedian(values, place, keepdim).values
    if floating:
        return out
    if taeda.isnan(out).any():
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating "
            "point"
        )
    return out.to(dtype=dtype)


def logsumexp(
    input: Tensor,
    dim: _Dims = None,
    *,
    keepdim: bool = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Logarithms of sums of exponentials of the elements that are not masked out."""
    data = filled("logsumexp", input, mask)
    out = taeda.logsumexp(data, dims_of(dim, data.ndim), keepdim=keepdim)
    return out.to(dtype=dtype or data.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype=None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)) without what is masked out of either."""
    a = filled("logaddexp", input, input_mask)
    b = filled("logaddexp", other, other_mask)
    return taeda.logaddexp(a, b).to(dtype=dtype or a.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """Norms of the vectors of elements that are not masked out."""
    data = filled("norm", input, mask, ord)
    dims = dims_of(dim, data.ndim)
    dtype = dtype or data.dtype
    return taeda.linalg.vector_norm(data, ord, dims, bool(keepdim), dtype=dtype)


def _softmax(name: str, input: Tensor, dim: int, dtype, mask) -> Tensor:
    data = filled(name, input, mask)
    function = getattr(taeda.nn.functional, name)
    return function(data, place_of(dim, data.ndim), dtype=dtype or data.dtype)


def softmax(
    input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Softmax along dim over the elements that are not masked out, 0 at the others."""
    return _softmax("softmax", input, dim, dtype, mask)


def log_softmax(
    input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    return _softmax("log_softmax", input, dim, dtype, mask)


def softmin(
    input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Softmax of the negative input."""
    return _softmax("softmin", input, dim, dtype, mask)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements divided by their norm along dim, or by eps where it is larger."""
    data = filled("normalize", input, mask)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return taeda.divide(data, taeda.maximum(size, size.new_full([], eps)))
