"""`max` and `min` of tensors of one element, which Python would compare by value."""

from __future__ import annotations

import functools

import taeda
from taeda import _capture

__all__ = ["table"]


def _fits(args) -> bool:
    """Whether these are numbers and tensors of one element, of one shape and dtype."""
    tensors = [a for a in args if isinstance(a, taeda.Tensor)]
    if len(args) < 2 or not tensors or tensors[0].numel() != 1:
        return False
    first = tensors[0]
    alike = all(t.shape == first.shape and t.dtype == first.dtype for t in tensors)
    return alike and all(isinstance(a, (int, float, taeda.Tensor)) for a in args)


def _of_two(of_tensors, bound: str, a, b):
    """The larger or smaller one; a number is a bound for `clamp`."""
    if not isinstance(a, taeda.Tensor):
        a, b = b, a
    if isinstance(b, taeda.Tensor):
        return _capture.run(of_tensors, (a, b), {})
    return _capture.run(taeda.clamp, (a,), {bound: b})


def _handler(plain, of_tensors, bound: str):
    def choose(*args, **options):
        listed = args[0] if len(args) == 1 else args
        if options or type(listed) not in (tuple, list) or not _fits(listed):
            return NotImplemented
        # Numbers among themselves first: what is left has a tensor on one side.
        numbers = [a for a in listed if not isinstance(a, taeda.Tensor)]
        tensors = [a for a in listed if isinstance(a, taeda.Tensor)]
        bounds = [plain(numbers)] if numbers else []
        pair = functools.partial(_of_two, of_tensors, bound)
        return functools.reduce(pair, [*tensors, *bounds])

    return choose


def table() -> dict:
    """Handlers by the functions of Python's that they stand for."""
    return {
        max: _handler(max, taeda.maximum, "min"),
        min: _handler(min, taeda.minimum, "max"),
    }
