"""Random matrices of given properties, and tensors in other layouts of memory."""

from __future__ import annotations

import taeda

__all__ = [
    "clone_input_helper",
    "dtype_name",
    "first_sample",
    "is_iterable",
    "is_iterable_of_tensors",
    "iter_indices",
    "make_fullrank_matrices_with_distinct_singular_values",
    "make_symmetric_matrices",
    "make_symmetric_pd_matrices",
    "noncontiguous_like",
    "numpy_to_torch_dtype",
    "random_hermitian_matrix",
    "random_hermitian_pd_matrix",
    "random_hermitian_psd_matrix",
    "random_lowrank_matrix",
    "random_matrix",
    "random_square_matrix_of_rank",
    "random_symmetric_matrix",
    "random_symmetric_pd_matrix",
    "random_symmetric_psd_matrix",
    "random_well_conditioned_matrix",
]


def _random(*shape, **where):
    return taeda.randn(*shape, **where)


def random_symmetric_matrix(l, *batches, **kwargs):
    """Symmetric matrices [*batches, l, l]; `dtype` and `device` may be given."""
    a = _random(*batches, l, l, **kwargs)
    return (a + a.mT).div_(2)


def make_symmetric_matrices(*shape, device, dtype):
    """Symmetric matrices of that shape, whose last two sizes are equal."""
    if shape[-1] != shape[-2]:
        raise AssertionError(f"expected square matrices, got the shape {shape}")
    t = taeda.testing.make_tensor(shape, device=device, dtype=dtype)
    return (t + t.mT).div_(2)


def random_hermitian_matrix(l, *batches, **kwargs):
    """Hermitian matrices [*batches, l, l]."""
    a = _random(*batches, l, l, **kwargs)
    return (a + a.mH).div_(2)


def random_symmetric_psd_matrix(l, *batches, **kwargs):
    """Symmetric matrices without negative eigenvalues, [*batches, l, l]."""
    a = _random(*batches, l, l, **kwargs)
    return a @ a.mT


def random_hermitian_psd_matrix(
    matrix_size, *batch_dims, dtype=taeda.double, device="cpu"
):
    """Hermitian matrices without negative eigenvalues, [*batch, size, size]."""
    a = _random(*batch_dims, matrix_size, matrix_size, dtype=dtype, device=device)
    return a @ a.mH


def random_symmetric_pd_matrix(matrix_size, *batch_dims, **kwargs):
    """Symmetric matrices with positive eigenvalues only, [*batch, size, size]."""
    a = _random(*batch_dims, matrix_size, matrix_size, **kwargs)
    return a @ a.mT + 1e-5 * _eye(a)


def random_hermitian_pd_matrix(matrix_size, *batch_dims, dtype, device):
    """Hermitian matrices with eigenvalues of 1 or more, [*batch, size, size]."""
    a = _random(*batch_dims, matrix_size, matrix_size, dtype=dtype, device=device)
    return a @ a.mH + _eye(a)


def make_symmetric_pd_matrices(*shape, device, dtype):
    """Symmetric matrices of that shape with positive eigenvalues only."""
    if shape[-1] != shape[-2]:
        raise AssertionError(f"expected square matrices, got the shape {shape}")
    t = taeda.testing.make_tensor(shape, device=device, dtype=dtype)
    return t @ t.mT + 1e-5 * _eye(t)


def _eye(a):
    return taeda.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def _with_values(shape, values, dtype, device):
    """Matrices of these singular values: [..., m, n] of [..., min(m, n)]."""
    a = _random(*shape, dtype=dtype, device=device)
    u, _, vh = taeda.linalg.svd(a, full_matrices=False)
    return (u * values.to(u.dtype)) @ vh


def make_fullrank_matrices_with_distinct_singular_values(
    *shape, device, dtype, requires_grad=False
):
    """Matrices with singular values between 1 and 2, of which no two are equal."""
    if len(shape) < 2:
        raise AssertionError(f"expected two dims or more, got the shape {shape}")
    count = min(shape[-2:])
    values = taeda.linspace(2, 1, count + 1, device=device)[1:]
    made = _with_values(shape, values, dtype, device)
    return made.detach().requires_grad_(requires_grad)


def random_matrix(rows, columns, *batch_dims, **kwargs):
    """Matrices [*batch, rows, columns].

    Args:
        singular: whether one singular value is 0. dtype, device: of the result.

    Returns:
        Tensor: singular values lie between 1 and 2 otherwise.
    """
    dtype, device = kwargs.get("dtype", taeda.double), kwargs.get("device", "cpu")
    count = min(rows, columns)
    values = taeda.linspace(2, 1, count + 1, device=device)[1:]
    if kwargs.get("singular", False) and count:
        values[count - 1] = 0
    return _with_values((*batch_dims, rows, columns), values, dtype, device)


def random_well_conditioned_matrix(*shape, dtype, device, mean=1.0, sigma=0.001):
    """Matrices whose singular values are near to a number.

    Args:
        shape: [..., m, n].
        mean, sigma: of the singular values.
    """
    values = taeda.randn(*shape[:-2], min(shape[-2:]), device=device) * sigma + mean
    return _with_values(shape, values, dtype, device)


def random_lowrank_matrix(rank, rows, columns, *batch_dims, **kwargs):
    """Matrices [*batch, rows, columns] of a rank."""
    left = random_matrix(rows, rank, *batch_dims, **kwargs)
    return left @ random_matrix(rank, columns, *batch_dims, **kwargs)


def random_square_matrix_of_rank(l, rank, dtype=taeda.double, device="cpu"):
    """A matrix [l, l] of a rank, whose other singular values are 1."""
    if rank > l:
        raise AssertionError(f"the rank {rank} is more than the size {l}")
    values = (taeda.arange(l, device=device) < rank).to(taeda.float64)
    return _with_values((l, l), values, dtype, device)


# Tensors ----------------------------------------------------------------------


def noncontiguous_like(t):
    """A tensor of the same values of which no dim is dense in memory."""
    if not t.is_contiguous():
        return t
    # What lies between the values is to be seen where it is read.
    other = float("nan") if t.is_floating_point() or t.is_complex() else 1
    pairs = taeda.stack((taeda.full_like(t, other), t.detach()), dim=-1)
    apart = pairs.unbind(-1)[1]
    return apart.requires_grad_() if t.requires_grad else apart


def clone_input_helper(input):
    """A copy of a tensor, or of a sequence of tensors; other values as they are."""
    if isinstance(input, taeda.Tensor):
        return taeda.clone(input)
    if isinstance(input, (list, tuple)):
        return tuple(map(clone_input_helper, input))
    return input


def first_sample(self, samples):
    """The first of an iterator; a test without any is left out."""
    import unittest

    try:
        return next(iter(samples))
    except StopIteration:
        raise unittest.SkipTest("Skipped! Need at least 1 sample input") from None


def iter_indices(tensor):
    """All indices of a tensor: numbers for a vector, tuples otherwise."""
    from itertools import product

    first, *others = [range(size) for size in tensor.shape] or [range(0)]
    return product(first, *others) if others else first


def is_iterable(obj) -> bool:
    """Whether an object can be iterated."""
    try:
        iter(obj)
    except TypeError:
        return False
    return True


def is_iterable_of_tensors(iterable, include_empty: bool = False) -> bool:
    """Whether it holds tensors alone, and what it is where it is empty."""
    if isinstance(iterable, taeda.Tensor) or not is_iterable(iterable):
        return False
    items = list(iterable)
    return all(isinstance(t, taeda.Tensor) for t in items) if items else include_empty


def dtype_name(dtype) -> str:
    """`float32` of `taeda.float32`."""
    return str(dtype).rpartition(".")[2]


# dtypes of NumPy ----------------------------------------------------------------

_SAME = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64"
    " complex64 complex128"
).split()


def _tables() -> tuple[dict, dict]:
    import numpy

    there = {getattr(numpy, n if n != "bool" else "bool_"): n for n in _SAME}
    forth = {kind: getattr(taeda, name) for kind, name in there.items()}
    back = {dtype: kind for kind, dtype in forth.items()}
    # NumPy has no such types; their values fit into these.
    back |= {taeda.bfloat16: numpy.float32, taeda.complex32: numpy.complex64}
    return forth, back


def numpy_to_torch_dtype(np_dtype):
    """The dtype for one of NumPy's, given as a dtype, a type or a name.

    Raises:
        ValueError: there is none.
    """
    import numpy

    kind = numpy.dtype(np_dtype).type
    found = _tables()[0].get(kind)
    if found is None:
        raise ValueError(f"no dtype for NumPy's {np_dtype}")
    return found


def __getattr__(name: str):
    if name in ("numpy_to_torch_dtype_dict", "torch_to_numpy_dtype_dict"):
        tables = dict(zip(("numpy", "torch"), _tables(), strict=True))
        return tables[name.partition("_")[0]]
    from taeda._lazy import missing

    raise missing(__name__, name)
