"""Tensors over the memory of objects with Python's buffer protocol."""

from __future__ import annotations

import warnings
from typing import Any

from taeda import _C
from taeda._C import dtype as _dtype
from taeda._tensor import Tensor

__all__ = ["frombuffer"]


def frombuffer(
    buffer: Any,
    *,
    dtype: _dtype | None = None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-D tensor over the memory of an object with Python's buffer protocol.

    Args:
        buffer: bytes, bytearray, memoryview, array, mmap and their like. A warning says
            where it is read-only, which tensors are not.
        dtype: of the elements; has to be given.
        count: how many elements; all that follow `offset` when -1.
        offset: bytes to leave out.
        requires_grad: whether gradients are computed for the result.

    Raises:
        TypeError: no dtype.
        ValueError: no such object, no elements, or more than there are.

    Example:
        >>> taeda.frombuffer(bytearray([1, 0, 2, 0]), dtype=taeda.int16)
        tensor([1, 2], dtype=taeda.int16)
    """
    if dtype is None:
        raise TypeError("frombuffer() missing 1 required keyword argument: 'dtype'")
    view = _view_of(buffer)
    size = _C._element_size(dtype)
    count = _checked_count(count, offset, size, view.nbytes)
    made = _C._over_buffer(view, dtype, count, offset)
    return made.requires_grad_() if requires_grad else made


def _view_of(buffer) -> memoryview:
    try:
        view = memoryview(buffer)
    except TypeError:
        view = None
    if view is None or not view.contiguous:
        raise ValueError(
            "object does not implement Python buffer protocol."
            f" Got an object of type {type(buffer).__name__}"
        )
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and tensors have no read-only state: do "
            "not write to it.",
            stacklevel=3,
        )
    return view


def _checked_count(count: int, offset: int, size: int, length: int) -> int:
    if length <= 0 or count == 0:
        raise ValueError(
            f"both buffer length ({length}) and count ({count}) must not be 0"
        )
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer "
            f"length ({length} bytes) minus 1"
        )
    room = length - offset
    if count < 0 and room % size:
        raise ValueError(
            f"buffer length ({room} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({size})"
        )
    if count > room // size:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} "
            f"bytes) must not be greater than actual buffer length ({length} bytes)"
        )
    return room // size if count < 0 else count
