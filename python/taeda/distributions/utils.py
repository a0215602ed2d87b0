"""Helpers of distributions."""

from __future__ import annotations

from functools import update_wrapper
from math import isqrt
from numbers import Number

import taeda

__all__ = """broadcast_all clamp_probs lazy_property logits_to_probs probs_to_logits
tril_matrix_to_vec vec_to_tril_matrix""".split()

euler_constant = 0.57721566490153286060  # as its limit is written


class absent:
    """A member of a class that refuses, naming itself, until a subclass has it."""

    def __init__(self, doc: str, kind=lambda function: function) -> None:
        self.doc, self.kind = doc, kind

    def __set_name__(self, owner, name: str) -> None:
        def member(self, *args, **kwargs):
            kind = type(self).__name__
            raise NotImplementedError(f"{kind} does not implement {name}")

        member.__name__, member.__qualname__ = name, f"{owner.__name__}.{name}"
        member.__doc__ = self.doc
        setattr(owner, name, self.kind(member))


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape, numbers in the tensors' dtype.

    Raises:
        ValueError: something that is neither a number nor a tensor.
    """
    from taeda.overrides import is_tensor_like

    tensors = [value for value in values if is_tensor_like(value)]
    numbers = sum(isinstance(value, Number) for value in values)
    if len(tensors) + numbers < len(values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if numbers:
        like = next((t for t in tensors if isinstance(t, taeda.Tensor)), None)
        kind = {"dtype": taeda.get_default_dtype()}
        if like is not None:
            kind = {"dtype": like.dtype, "device": like.device}
        make = taeda.tensor
        values = [make(v, **kind) if isinstance(v, Number) else v for v in values]
    return taeda.broadcast_tensors(*values)


def _compatible(a, b) -> bool:
    """Whether two shapes broadcast together."""
    pairs = zip(a[::-1], b[::-1], strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _standard_normal(shape, dtype, device):
    return taeda.randn(shape, dtype=dtype, device=device)


def uniform_like(shape, like):
    """Uniform numbers in [0, 1) with a tensor's dtype and device."""
    return taeda.rand(shape, dtype=like.dtype, device=like.device)


def _sum_rightmost(value, dim: int):
    """The sum over the last dims."""
    return value.flatten(-dim).sum(-1) if dim else value


def logits_to_probs(logits, is_binary: bool = False):
    """Probabilities of logits: sigmoid of each, or softmax along the last dim."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs):
    """Probabilities held away from 0 and 1 by the dtype's eps."""
    margin = taeda.finfo(probs.dtype).eps
    return probs.clamp(margin, 1 - margin)


def probs_to_logits(probs, is_binary: bool = False):
    """Logits of probabilities; the inverse of `logits_to_probs`."""
    held = clamp_probs(probs)
    return held.log() - (-held).log1p() if is_binary else held.log()


class lazy_property:
    """A method whose result becomes the attribute when it is first read."""

    def __init__(self, wrapped) -> None:
        update_wrapper(self, wrapped)
        self.wrapped = wrapped

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with taeda.enable_grad():
            made = {self.wrapped.__name__: self.wrapped(instance)}
        vars(instance).update(made)
        return next(iter(made.values()))


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is on the class itself: a property."""

    def __init__(self, wrapped) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag: int = 0):
    """The lower triangle of (..., n, n) row by row, from the diagonal `diag` down.

    Raises:
        ValueError: the diagonal lies outside of the matrix.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = taeda.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag: int = 0):
    """A square matrix with the vector in its lower triangle, row by row.

    Raises:
        ValueError: no matrix has a triangle of that length.
    """
    length = vec.shape[-1]
    # A triangle ending diag above the main diagonal has n (n + 1) / 2 + n diag elements
    # less the corner of diag (diag + 1) / 2 that is cut off.
    b = 1 + 2 * diag
    n = (isqrt(b * b + 8 * length + 4 * abs(diag) * (diag + 1)) - b) // 2
    rows, columns = taeda.tril_indices(n, n, diag)
    if len(rows) != length:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the "
            "lower triangular part of a square D x D matrix."
        )
    mat = vec.new_zeros((*vec.shape[:-1], n, n))
    mat[..., rows, columns] = vec
    return mat
