"""Functions that serve calls without keeping a thread."""

from __future__ import annotations

import functools

__all__ = ["async_execution"]


def async_execution(fn):
    """Marks a function whose result comes with the future that it returns.

    A worker that serves a call of it goes on with other calls; the caller gets the
    future's value once it is there. The mark goes below `staticmethod` and
    `classmethod`, so that it is on the function.

    Args:
        fn: returns a `taeda.futures.Future`.

    Returns:
        A function with the same arguments.

    Example::

        @rpc.functions.async_execution
        def add_at(to, x, y):
            return rpc.rpc_async(to, taeda.add, args=(x, y))
    """

    @functools.wraps(fn)
    def marked(*args, **kwargs):
        return fn(*args, **kwargs)

    marked._wrapped_async_rpc_function = fn
    return marked
