"""Helpers of distributions."""

from __future__ import annotations

from numbers import Number

import taeda

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060  # as its limit is written


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape, numbers in the tensors' dtype.

    Raises:
        ValueError: something that is neither a number nor a tensor.
    """
    from taeda.overrides import is_tensor_like

    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        options = {"dtype": taeda.get_default_dtype()}
        for value in values:
            if isinstance(value, taeda.Tensor):
                options = {"dtype": value.dtype, "device": value.device}
                break
        values = [
            v if is_tensor_like(v) else taeda.tensor(v, **options) for v in values
        ]
    return taeda.broadcast_tensors(*values)


def _standard_normal(shape, dtype, device):
    return taeda.normal(
        taeda.zeros(shape, dtype=dtype, device=device),
        taeda.ones(shape, dtype=dtype, device=device),
    )


def _sum_rightmost(value, dim: int):
    """The sum over the last dims."""
    if dim == 0:
        return value
    return value.reshape((*value.shape[:-dim], -1)).sum(-1)


def logits_to_probs(logits, is_binary: bool = False):
    """Probabilities of logits: sigmoid of each, or softmax along the last dim."""
    if is_binary:
        return taeda.sigmoid(logits)
    return taeda.softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities held away from 0 and 1 by the dtype's eps."""
    eps = taeda.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary: bool = False):
    """Logits of probabilities; the inverse of `logits_to_probs`."""
    held = clamp_probs(probs)
    if is_binary:
        return taeda.log(held) - taeda.log1p(-held)
    return taeda.log(held)


class lazy_property:
    """A method whose result becomes the attribute when it is first read."""

    def __init__(self, wrapped) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = getattr(wrapped, "__name__", "")

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with taeda.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is on the class itself: a property."""

    def __init__(self, wrapped) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag: int = 0):
    """The lower triangle, row by row.

    Raises:
        ValueError: the diagonal lies outside of the matrix.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = taeda.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag: int = 0):
    """A matrix with the vector in its lower triangle, row by row.

    Raises:
        ValueError: no matrix has a triangle of that length.
    """
    length = vec.shape[-1]
    n = (
        -(1 + 2 * diag)
        + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5
    ) / 2
    eps = taeda.finfo(vec.dtype).eps
    if not round(n) - eps <= n <= round(n) + eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the "
            "lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    rows, columns = taeda.tril_indices(n, n, diag)
    mat[..., rows, columns] = vec
    return mat
