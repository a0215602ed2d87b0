"""Constructors that take lists as well as tensors; names of old."""

from __future__ import annotations

import taeda
from taeda import _C
from taeda._C import _sparse as _natives

__all__ = [
    "dsmm",
    "hsmm",
    "saddmm",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "spmm",
]

_VF = _C._VariableFunctions
# What these products are called since sparse tensors are tensors.
dsmm = spmm = _VF.mm
hsmm = _VF.hspmm


def saddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat1 @ mat2); `sparse.addmm` is the newer name.

    Args:
        input (Tensor): what is added.
        mat1, mat2 (Tensor): matrices, of which the first is sparse.
        beta, alpha (Number): factors.
        out (Tensor): gets the result, if given; of the result's layout.

    Example:
        >>> x = taeda.eye(2)
        >>> taeda.saddmm(x, x.to_sparse(), x).tolist()
        [[2.0, 0.0], [0.0, 2.0]]
    """
    result = _natives._sparse_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return result if out is None else out.copy_(result)


def _indices(given, device):
    if isinstance(given, taeda.Tensor):
        return given if device is None else given.to(device)
    return taeda.tensor(given, dtype=taeda.int64, device=device)


def _values(given, dtype, device):
    if isinstance(given, taeda.Tensor):
        return given.to(dtype=dtype or given.dtype, device=device or given.device)
    return taeda.tensor(given, dtype=dtype, device=device)


def _made(make, unsafe, validate, parts, size, options, check, requires_grad):
    """Call a constructor; checks are the caller's wish or the global switch.

    Args:
        make: checks if the switch is on. unsafe: never checks, and needs a size.
        validate: checks what was made.
    """
    enabled = _C._check_sparse_tensor_invariants()
    if size is not None:
        size = tuple(size)
    if enabled and check is False and size is not None:
        made = unsafe(*parts, size, **options)
    else:
        made = make(*parts, *(() if size is None else (size,)), **options)
    if check and not enabled:
        validate(*(part.detach() for part in parts), made)
    return made.requires_grad_() if requires_grad else made


def _is_size(value) -> bool:
    return isinstance(value, (tuple, list, taeda.Size)) and all(
        type(n) is int for n in value
    )


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
):
    """A sparse tensor of elements and their places.

    Args:
        indices: places [sparse dims, entries], a tensor or nested lists; or, alone, the
            size of a tensor without entries.
        values: elements [entries, *dense sizes].
        size: shape of the result; if None, the smallest that has room.
        dtype: dtype of the values. device: where the result lies.
        requires_grad: whether gradients are recorded.
        check_invariants: whether places are checked; None asks
            `taeda.sparse.check_sparse_tensor_invariants`.
        is_coalesced: True says that places are ordered and differ.

    Raises:
        RuntimeError: parts that do not go together.

    Example:
        >>> taeda.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        shape = size if indices is None else indices
        if not _is_size(shape):
            raise TypeError(
                "sparse_coo_tensor: expected indices and values, or a size, got "
                f"{type(shape).__name__}"
            )
        made = _natives.sparse_coo_tensor(tuple(shape), dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made
    places = _indices(indices, device).to(taeda.int64)

    def validate(i, v, made):
        _VF._validate_sparse_coo_tensor_args(i, v, made.shape, made.is_coalesced())

    return _made(
        _natives.sparse_coo_tensor,
        _VF._sparse_coo_tensor_unsafe,
        validate,
        (places, _values(values, dtype, device)),
        size,
        {"is_coalesced": is_coalesced, "pin_memory": pin_memory},
        check_invariants,
        requires_grad,
    )


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
):
    """A sparse tensor in one of the layouts CSR, CSC, BSR and BSC.

    Args:
        compressed_indices: where each row or column begins in the values, then their
            number, [*batch, rows + 1]; int32 or int64.
        plain_indices: the column or row of each entry, [*batch, entries].
        values: elements [*batch, entries, *block, *dense sizes].
        size: shape of the result; if None, the smallest that has room.
        dtype: dtype of the values. layout: of the result. device: where it lies.
        requires_grad: whether gradients are recorded.
        check_invariants: whether indices are checked; None asks
            `taeda.sparse.check_sparse_tensor_invariants`.

    Raises:
        RuntimeError: parts that do not go together, no layout or another one.
    """

    def validate(c, p, v, made):
        _VF._validate_sparse_compressed_tensor_args(c, p, v, made.shape, made.layout)

    return _made(
        _natives.sparse_compressed_tensor,
        _VF._sparse_compressed_tensor_unsafe,
        validate,
        (
            _indices(compressed_indices, device),
            _indices(plain_indices, device),
            _values(values, dtype, device),
        ),
        size,
        {"layout": layout, "pin_memory": pin_memory},
        check_invariants,
        requires_grad,
    )


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **options):
    """A sparse tensor of compressed rows; see `sparse_compressed_tensor`.

    Args:
        crow_indices: where each row begins. col_indices: the column of each entry.
        values, size, options: as there.

    Example:
        >>> taeda.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    options.setdefault("layout", taeda.sparse_csr)
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **options)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """A sparse tensor of compressed columns; see `sparse_compressed_tensor`.

    Args:
        ccol_indices: where each column begins. row_indices: the row of each entry.
        values, size, options: as there.
    """
    options.setdefault("layout", taeda.sparse_csc)
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **options)


def sparse_bsr_tensor(crow_indices, col_indices, values, size=None, **options):
    """A sparse tensor of compressed rows of blocks; see `sparse_compressed_tensor`.

    Args:
        crow_indices: where each row of blocks begins. col_indices: the column of each.
        values, size, options: as there.
    """
    options.setdefault("layout", taeda.sparse_bsr)
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **options)


def sparse_bsc_tensor(ccol_indices, row_indices, values, size=None, **options):
    """A sparse tensor of compressed columns of blocks; see `sparse_compressed_tensor`.

    Args:
        ccol_indices: where each column of blocks begins. row_indices: the row of each.
        values, size, options: as there.
    """
    options.setdefault("layout", taeda.sparse_bsc)
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **options)
