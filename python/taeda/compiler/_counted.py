"""Stand-ins of results whose size the elements of a tensor decide.

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


def _narrow(input, dim, start, length):
    """A view of the right sizes; where it begins is known when the graph runs."""
    if not isinstance(start, Tensor) or start.dim() or not _counts(start):
        return NotImplemented
    return input.narrow(dim, 0, length)


def _getitem(input, index):
    if not isinstance(index, Tensor) or index.dtype is not taeda.bool:
        return NotImplemented
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


_FUNCTIONS = {
    "__getitem__": _getitem,
    "argwhere": _argwhere,
    "bincount": _bincount,
    "masked_select": _masked_select,
    "narrow": _narrow,
    "nonzero": _nonzero,
    "repeat_interleave": _repeat_interleave,
    "tensor_split": _tensor_split,
    "unique": _unique,
    "unique_consecutive": _unique_consecutive,
    "where": _where,
}
# By the name of the function that is called.
RULES = {
    name: functools.partial(_result, rule, inspect.signature(rule))
    for name, rule in _FUNCTIONS.items()
}
