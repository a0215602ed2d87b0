"""Indexing of tensors whose sizes are symbols: views, dim by dim, and positions."""

from __future__ import annotations

from taeda import Tensor, uint8
from taeda import bool as truth
from taeda._ops import ops
from taeda._symbols import SymInt

__all__ = ["item", "positions"]

_MASKS = (truth, uint8)


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


def _is_positions(item) -> bool:
    """Whether it is a tensor of positions with a dim, and no mask."""
    return isinstance(item, Tensor) and item.dim() > 0 and item.dtype not in _MASKS


def positions(tensor, key):
    """(view, indices) of `tensor[key]`: one tensor of positions or None for each dim.

    None where the key has neither, or masks, whose result has as many elements as
    they have truths.
    """
    items = key if isinstance(key, tuple) else (key,)
    if not all(_is_positions(each) or _is_basic(each) for each in items):
        return None
    # Each tensor takes a dim as it is, where the view has it.
    view = item(tensor, tuple(slice(None) if _is_positions(e) else e for e in items))
    used = sum(each is not None and each is not Ellipsis for each in items)
    skipped = tensor.dim() - used
    indices = []
    for each in items:
        if _is_positions(each):
            indices.append(each)
        elif each is Ellipsis:
            indices += [None] * skipped
            skipped = 0
        elif each is None or isinstance(each, slice):
            indices.append(None)
    while indices and indices[-1] is None:
        indices.pop()
    return (view, indices) if indices else None


def _sliced(tensor, dim: int, part: slice):
    if part == slice(None):
        return tensor
    step = 1 if part.step is None else part.step
    if not step > 0:
        raise ValueError("step must be greater than zero")
    return ops.aten.slice.Tensor(tensor, dim, part.start, part.stop, step)
