"""Stand-ins of results whose size the elements of a tensor, or a number read off one,
decide.

A size that is known only when the graph runs is a symbol without a value: programs go
on with it as with any other, and a decision about it ends the graph. The call itself is
a node as always; what it is at run time is read off its result.
"""

from __future__ import annotations

import functools
import inspect

import taeda
from taeda import Tensor, _capture

__all__ = ["RULES"]


def _sized(x, *sizes, dtype=None):
    """A tensor on `meta` with symbols among its sizes, made of `x`."""
    if x.requires_grad and dtype is None and taeda.is_grad_enabled():
        # The result of calls, by which a gradient leads to x.
        return x.sum().expand(sizes).clone()
    return taeda.empty(sizes, dtype=dtype or x.dtype, device="meta")


def _indices(x, dtype=taeda.int64):
    return _sized(x, _capture.new_size(), dtype=dtype)


def _nonzero(input, *, out=None, as_tuple=False):
    count = _capture.new_size()
    if not as_tuple:
        return _sized(input, count, input.dim(), dtype=taeda.int64)
    dims = max(input.dim(), 1)
    return tuple(_sized(input, count, dtype=taeda.int64) for _ in range(dims))


def _argwhere(input):
    return _nonzero(input)


def _where(condition, input=None, other=None, *, out=None):
    if input is not None or other is not None:
        return NotImplemented
    return _nonzero(condition, as_tuple=True)


def _masked_select(input, mask, *, out=None):
    return _sized(input, _capture.new_size())


def _unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    return _distinct(input, return_inverse, return_counts, dim)


def _unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    return _distinct(input, return_inverse, return_counts, dim)


def _distinct(x, inverse, counts, dim):
    count, sizes = _capture.new_size(), [*x.shape]
    shape = x.shape
    if dim is None:
        sizes = [count]
    else:
        shape = (x.shape[dim],)
        sizes[dim] = count
    made = [_sized(x.detach(), *sizes)]
    if inverse:
        made.append(taeda.empty(shape, dtype=taeda.int64, device="meta"))
    if counts:
        made.append(_sized(x, count, dtype=taeda.int64))
    return tuple(made) if len(made) > 1 else made[0]


def _bincount(input, weights=None, minlength=0):
    dtype = taeda.int64
    if weights is not None:
        dtype = weights.dtype if weights.dtype == taeda.float32 else taeda.float64
    return _indices(input, dtype)


def _tensor_split(input, indices_or_sections, dim=0):
    if not isinstance(indices_or_sections, Tensor) or not indices_or_sections.dim():
        return NotImplemented
    dim += input.dim() if dim < 0 else 0
    parts = []
    for _ in range(indices_or_sections.shape[0] + 1):
        sizes = [*input.shape]
        sizes[dim] = _capture.new_size()
        parts.append(input.as_strided(sizes, input.stride()))
    return tuple(parts)


def _counts(x) -> bool:
    return not (x.is_floating_point() or x.is_complex() or x.dtype is taeda.bool)


def _comes_later(number) -> bool:
    """Whether a number is known only when the graph runs."""
    return isinstance(number, taeda.SymInt) and number.node.hint() is None


def _resized(input, dim, size, step=1):
    sizes, strides = [*input.shape], [*input.stride()]
    sizes[dim] = size
    strides[dim] *= step
    return input.as_strided(sizes, strides)


def _narrow(input, dim, start, length):
    """A view of the right sizes; where it begins is known when the graph runs."""
    in_tensor = isinstance(start, Tensor) and not start.dim() and _counts(start)
    if not in_tensor and not _comes_later(start) and not _comes_later(length):
        return NotImplemented
    if not _comes_later(length):
        return input.narrow(dim, 0, length)
    return _resized(input, dim, length)


def _split(input, sizes, dim=0):
    if not isinstance(sizes, (list, tuple)) or not any(map(_comes_later, sizes)):
        return NotImplemented
    return tuple(_resized(input, dim, size) for size in sizes)


def _stretch(input, index):
    """A view at bounds and positions that are known when the graph runs."""
    items = [*index] if isinstance(index, tuple) else [index]
    later, dim = False, 0
    for i, item in enumerate(items):
        if isinstance(item, (Tensor, bool, list)):
            return NotImplemented
        if item is Ellipsis:
            dim = input.dim() - sum(each is not None for each in items[i + 1 :])
        elif isinstance(item, slice) and any(
            map(_comes_later, (item.start, item.stop))
        ):
            input = _resized(input, dim, _capture.new_size(), item.step or 1)
            items[i], later = slice(None), True
        elif _comes_later(item):
            items[i], later = 0, True
        dim += item is not None and item is not Ellipsis
    return input[tuple(items)] if later else NotImplemented


def _setitem(input, index, value):
    """Writes to the stand-in, as the call will to some of the tensor."""
    if _stretch(input.detach(), index) is NotImplemented:
        return NotImplemented
    is_tensor = isinstance(value, Tensor)
    input.copy_(value.sum() if is_tensor else taeda.empty((), device="meta"))
    return None


def _getitem(input, index):
    if not isinstance(index, Tensor) or index.dtype is not taeda.bool:
        return _stretch(input, index)
    dims = index.dim()
    if not dims or tuple(index.shape) != tuple(input.shape[:dims]):
        return NotImplemented
    return _sized(input, _capture.new_size(), *input.shape[dims:])


def _repeat_interleave(input, repeats, dim=None, *, output_size=None):
    if not isinstance(repeats, Tensor) or output_size is not None:
        return NotImplemented
    if dim is None:
        return _sized(input, _capture.new_size())
    sizes = [*input.shape]
    sizes[dim] = _capture.new_size()
    return _sized(input, *sizes)


def _ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank=0,
    reduction="mean",
    zero_infinity=False,
):
    """The kernel keeps a table for backward that is as wide as the longest target."""
    losses = log_probs.sum((0, -1))
    return losses if reduction in ("none", 0) else losses.sum()


def _result(rule, signature, args: tuple, kwargs: dict | None):
    """The stand-in of a call's result; NotImplemented where no size of it is counted.

    Args:
        rule: that of the function or method that is called.
        args, kwargs: stand-ins and constants.
    """
    try:
        given = signature.bind(*args, **kwargs or {})
    except TypeError:
        return NotImplemented  # which the function itself will say
    if given.arguments.get("out") is not None:
        return NotImplemented
    if not isinstance(next(iter(given.arguments.values())), Tensor):
        return NotImplemented
    return rule(*given.args, **given.kwargs)


def _rules(functions: dict) -> dict:
    return {
        name: functools.partial(_result, rule, inspect.signature(rule))
        for name, rule in functions.items()
    }


_OF_NUMBERS = {
    "__getitem__": _stretch,
    "__setitem__": _setitem,
    "narrow": _narrow,
    "split": _split,
    "split_with_sizes": _split,
}
_OF_ELEMENTS = {
    "__getitem__": _getitem,
    "argwhere": _argwhere,
    "bincount": _bincount,
    "ctc_loss": _ctc_loss,
    "masked_select": _masked_select,
    "nonzero": _nonzero,
    "repeat_interleave": _repeat_interleave,
    "tensor_split": _tensor_split,
    "unique": _unique,
    "unique_consecutive": _unique_consecutive,
    "where": _where,
}
# By the name of the function that is called: of numbers that were read off tensors,
# and of those and what elements decide.
OF_NUMBERS = _rules(_OF_NUMBERS)
RULES = OF_NUMBERS | _rules(_OF_ELEMENTS)
