"""Functions of the top level that few programs call: old names, and questions."""

from __future__ import annotations

import taeda
from taeda import _C
from taeda._choice import Choice

__all__ = [
    "AVG",
    "AcceleratorError",
    "FatalError",
    "SUM",
    "_convert_indices_from_csr_to_coo",
    "_segment_reduce",
    "_shape_as_tensor",
    "cudnn_is_acceptable",
    "detach_copy",
    "eig",
    "fork",
    "frobenius_norm",
    "init_num_threads",
    "is_distributed",
    "is_vulkan_available",
    "lstsq",
    "matrix_rank",
    "nuclear_norm",
    "resize_as_sparse_",
    "resize_of",
    "slice_inverse",
    "solve",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_fresh_size",
    "symeig",
    "wait",
]


class AcceleratorError(RuntimeError):
    """A failure of an accelerator, for programs that catch it; the CPU has none."""


class FatalError(Exception):
    """A failure that ends the process, for programs that catch it; none is raised."""


# Packages name it as it was called before it was public.
_segment_reduce = taeda.segment_reduce


def _shape_as_tensor(self):
    """The sizes of a tensor as a tensor."""
    return taeda.tensor(self.shape, dtype=taeda.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices, col_indices, *, out_int32: bool = False, transpose: bool = False
):
    """The coordinates of elements that are given by compressed rows.

    Args:
        crow_indices: (*batch, rows + 1), where each row begins.
        col_indices: (*batch, elements), the column of each element.
        out_int32: whether the result is int32, not int64.
        transpose: whether the columns stand before the rows.

    Returns:
        (dims, all elements): the coordinates in each batch dim, then row and column.

    Example:
        >>> starts, columns = taeda.tensor([0, 2, 2, 3]), taeda.tensor([0, 1, 1])
        >>> taeda._convert_indices_from_csr_to_coo(starts, columns)
        tensor([[0, 0, 2],
                [0, 1, 1]])
    """
    counts = crow_indices.diff(dim=-1)
    places = taeda.arange(counts.numel(), device=counts.device)
    each = places.repeat_interleave(counts.reshape(-1).to(taeda.int64))
    *batch, row = taeda.unravel_index(each, counts.shape)
    column = col_indices.reshape(-1).to(row.dtype)
    found = taeda.stack([*batch, *((column, row) if transpose else (row, column))])
    return found.to(taeda.int32) if out_int32 else found


for _error in (AcceleratorError, FatalError):
    _error.__module__ = "taeda"


class AggregationType(Choice):
    """How numbers of several calls become one."""

    __slots__ = ()
    _values = {"SUM": 0, "AVG": 1}


SUM, AVG = AggregationType


def fork(*args, **kwargs):
    """A future of what the first argument, a function, gives for the others.

    It is called at once, as PyTorch does outside of TorchScript.

    Example:
        >>> taeda.wait(taeda.fork(max, 1, 2))
        2
    """
    from taeda import jit

    return jit.fork(*args, **kwargs)


def wait(fut):
    """The value of a future, as soon as it is there."""
    return fut.wait()


# Norms ------------------------------------------------------------------------


def frobenius_norm(input, dim, keepdim: bool = False, *, out=None):
    """The root of the sum of squares; `linalg.vector_norm` is the newer name.

    Args:
        input (Tensor): real or complex.
        dim (int or ints): one dim, two, or none of them for all.
        keepdim: keep them, of size 1.

    Raises:
        RuntimeError: more than two dims.

    Example:
        >>> taeda.frobenius_norm(taeda.ones(2, 2), (0, 1))
        tensor(2.)
    """
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(
            "Expected at most 2 dimensions, but got " + str(len(dims)) + " dimensions "
            "instead."
        )
    return taeda.linalg.vector_norm(input, 2, dims or None, keepdim, out=out)


def nuclear_norm(input, dim=(-2, -1), keepdim: bool = False, *, out=None):
    """The sum of a matrix's singular values; `linalg.matrix_norm` is the newer name.

    Args:
        input (Tensor): matrices.
        dim: their two dims. Without them `keepdim` may stand in their place.
        keepdim: keep the dims, of size 1.

    Example:
        >>> taeda.nuclear_norm(taeda.eye(2))
        tensor(2.)
    """
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    if len(dim) != 2:
        raise RuntimeError(
            f"nuclear_norm requires a 'dim' argument of size 2, but got {list(dim)}"
        )
    return taeda.linalg.matrix_norm(input, "nuc", tuple(dim), keepdim, out=out)


# Copies and views -------------------------------------------------------------


def detach_copy(input, *, out=None):
    """A copy outside of the graph, in memory of its own."""
    copy = input.detach().clone()
    return copy if out is None else out.resize_(copy.shape).copy_(copy)


def _copy_of(name: str):
    """`NAME_copy`: what the method gives, in memory of its own."""

    def copy(input, *, out=None):
        made = getattr(input, name)().clone()
        return made if out is None else out.resize_(made.shape).copy_(made)

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = (
        f"A copy of `Tensor.{name}()`, for functions that return no views.\n\n"
        "Raises:\n    RuntimeError: the tensor's layout has none."
    )
    return copy


for _name in (
    "indices values crow_indices col_indices ccol_indices row_indices"
).split():
    globals()[f"{_name}_copy"] = _copy_of(_name)
    __all__.append(f"{_name}_copy")


def resize_as_sparse_(input, the_template):
    """Gives a sparse tensor the sizes and dims of another one.

    Args:
        input (Tensor): COO, written; what it holds stays only where it still fits.
        the_template (Tensor): whose sizes, sparse and dense dims it gets.

    Raises:
        RuntimeError: `input` is not COO, or would have to give up values.

    Example:
        >>> x = taeda.zeros(1, 1).to_sparse()
        >>> taeda.resize_as_sparse_(x, taeda.eye(2).to_sparse()).shape
        taeda.Size([2, 2])
    """
    if input.layout is not _C.sparse_coo:
        raise RuntimeError(
            f"resize_as_sparse_: expected a sparse COO tensor, got {input.layout}"
        )
    sparse = the_template.sparse_dim() if the_template.is_sparse else 0
    return input.sparse_resize_(the_template.shape, sparse, the_template.dim() - sparse)


def slice_inverse(input, src, dim: int = 0, start=None, end=None, step=1):
    """The whole tensor of which `input` is the slice `src[start:end:step]` along a dim.

    Args:
        input (Tensor): a slice, over the whole one's memory.
        src (Tensor): of the whole one's sizes and strides.

    Raises:
        RuntimeError: the memory is too small for that.
    """
    begin = input.storage_offset() - (start or 0) * src.stride(dim)
    return input.as_strided(src.shape, src.stride(), begin)


def resize_of(input, *sizes):
    """`Tensor.resize`: the elements in other sizes, of as many elements.

    Raises:
        RuntimeError: another number of elements.
    """
    whole = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    wanted = _C.Size(whole)
    if wanted.numel() != input.numel():
        raise RuntimeError(
            f"requested resize to {tuple(wanted)} ({wanted.numel()} elements in "
            f"total), but the given tensor has a size of {tuple(input.shape)} "
            f"({input.numel()} elements). resize can only change the shape of a given "
            "tensor; resize_ changes the number of elements"
        )
    return input.contiguous().view(wanted)


# Questions about devices ------------------------------------------------------


def cudnn_is_acceptable(input) -> bool:
    """Whether cuDNN would compute with a tensor: not in this build."""
    return False


def is_vulkan_available() -> bool:
    """Whether Vulkan can be used: not in this build."""
    return False


def is_distributed(input) -> bool:
    """Whether a tensor lies on several devices at once: none of this class does."""
    return False


def init_num_threads() -> None:
    """The number of threads is settled when the library is loaded; nothing changes."""


def _autocast(device: str):
    """The four old settings of autocast for one kind of device."""

    def enabled() -> bool:
        return _C.is_autocast_enabled(device)

    def set_enabled(enabled: bool) -> None:
        _C.set_autocast_enabled(device, enabled)

    def dtype():
        return _C.get_autocast_dtype(device)

    def set_dtype(dtype) -> None:
        _C.set_autocast_dtype(device, dtype)

    names = ("is_{}_enabled", "set_{}_enabled", "get_{}_dtype", "set_{}_dtype")
    for name, function in zip(
        names, (enabled, set_enabled, dtype, set_dtype), strict=True
    ):
        full = name.format(f"autocast_{device}")
        function.__name__ = function.__qualname__ = full
        function.__doc__ = f"As the function of autocast with '{device}' before it."
        globals()[full] = function
        __all__.append(full)


_autocast("ipu")
_autocast("xla")


# Sizes that depend on values ---------------------------------------------------


def sym_constrain_range(size, *, min: int | None = None, max: int | None = None):
    """Check that a number lies between two others.

    Raises:
        RuntimeError: it does not, or there is nothing between them.
    """
    low = -(2**63) if min is None else min
    high = 2**63 - 1 if max is None else max
    if high < low:
        raise RuntimeError(
            f"Max must be greater than or equal to min: got min={low} max={high}"
        )
    if not low <= size <= high:
        raise RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def sym_constrain_range_for_size(
    size, *, min: int | None = None, max: int | None = None
):
    """The same for a size, whose least value is 0.

    Raises:
        RuntimeError: as `sym_constrain_range`; or `max` is 2 or less.
    """
    if max is not None and max <= 2:
        raise RuntimeError(
            f"Max value to constrain_range_for_size must be greater than 2. got: {max}"
        )
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def sym_fresh_size(expr):
    """The number itself: a new symbol stands for it in graphs alone."""
    return expr.item() if isinstance(expr, taeda.Tensor) else expr


# Functions that PyTorch has removed, with what to call now ----------------------


def _removed(name: str, instead: str):
    def refuse_old(*args, **kwargs):
        raise RuntimeError(
            "This function was deprecated since version 1.9 and is now removed. Call "
            f"{instead} in place of {name}."
        )

    refuse_old.__name__ = refuse_old.__qualname__ = name
    refuse_old.__doc__ = f"Raises RuntimeError: {instead} has taken its place."
    return refuse_old


eig = _removed("eig", "linalg.eig or linalg.eigvals")
lstsq = _removed("lstsq", "linalg.lstsq, whose arguments stand the other way round,")
matrix_rank = _removed("matrix_rank", "linalg.matrix_rank")
solve = _removed("solve", "linalg.solve, whose arguments stand the other way round,")
symeig = _removed("symeig", "linalg.eigh or linalg.eigvalsh")
