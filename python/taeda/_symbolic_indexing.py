"""Basic indexing of tensors whose sizes are symbols: as views, dim by dim."""

from __future__ import annotations

from taeda._ops import ops
from taeda._symbols import SymInt

__all__ = ["item"]


def _is_number(item) -> bool:
    return type(item) is int or type(item) is SymInt


def _is_basic(item) -> bool:
    if isinstance(item, slice):
        bounds = (item.start, item.stop, item.step)
        return all(b is None or _is_number(b) for b in bounds)
    return _is_number(item) or item is None or item is Ellipsis


def item(tensor, key):
    """`tensor[key]` as views that keep the symbols; None where the key has more than
    numbers, slices, None and `...`.
    """
    items = key if isinstance(key, tuple) else (key,)
    if not all(map(_is_basic, items)):
        return None
    used = sum(each is not None and each is not Ellipsis for each in items)
    if used > tensor.dim():
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    dim, skipped = 0, tensor.dim() - used
    for each in items:
        if each is Ellipsis:
            dim, skipped = dim + skipped, 0
        elif each is None:
            tensor = ops.aten.unsqueeze.default(tensor, dim)
            dim += 1
        elif isinstance(each, slice):
            tensor = _sliced(tensor, dim, each)
            dim += 1
        else:
            tensor = ops.aten.select.int(tensor, dim, each)
    return tensor


def _sliced(tensor, dim: int, part: slice):
    if part == slice(None):
        return tensor
    step = 1 if part.step is None else part.step
    if not step > 0:
        raise ValueError("step must be greater than zero")
    return ops.aten.slice.Tensor(tensor, dim, part.start, part.stop, step)
