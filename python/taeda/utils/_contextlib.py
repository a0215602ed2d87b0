"""Context managers that are decorators too."""

from __future__ import annotations

import functools

from taeda.autograd.grad_mode import _decorate, _Decorator

__all__ = ["context_decorator"]


class _DecoratorContextManager(_Decorator):
    """Base class of contexts that may decorate functions and generators.

    A subclass defines `__enter__` and `__exit__`, and `clone` where its constructor
    takes arguments: each call of a function has a context of its own.
    """

    def __enter__(self) -> None:
        raise NotImplementedError(f"{type(self).__name__}.__enter__")

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        raise NotImplementedError(f"{type(self).__name__}.__exit__")


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for contexts without arguments: `@context` means `@context()`."""

    def __new__(cls, orig_func=None):
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)


def context_decorator(ctx, func):
    """The function, run in a context each time.

    Args:
        ctx: a function without arguments that makes a context, or a context that can
            be entered again. func: a function, generator or coroutine.
    """
    make = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    return functools.wraps(func)(_decorate(make, func))
