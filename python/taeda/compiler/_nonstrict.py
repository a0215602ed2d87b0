"""Functions that graphs hold as one call, with containers around their tensors."""

from __future__ import annotations

import functools

__all__ = ["nonstrict_trace"]


def nonstrict_trace(traceable_fn):
    """A function that graphs hold as one call.

    Capture does not follow what it does: its code runs when the graph runs. While a
    graph is captured it is called once with tensors without memory, to tell what it
    returns. It must not look at values and has no effect but on what it returns.

    Args:
        traceable_fn: takes and returns tensors and numbers, in lists, tuples and dicts.

    Raises:
        AssertionError: something that cannot be called.

    Example:
        >>> @taeda._dynamo.nonstrict_trace
        ... def scaled(parts):
        ...     return [part * 2 for part in parts]
        >>> taeda.compile(lambda x: scaled([x])[0] + 1)(taeda.ones(2))
        tensor([3., 3.])
    """
    from taeda.compiler import allow_in_graph

    if not callable(traceable_fn):
        raise AssertionError(
            f"nonstrict_trace expects a callable, got {type(traceable_fn).__name__}"
        )

    @functools.wraps(traceable_fn)
    def traced(*args, **kwargs):
        return traceable_fn(*args, **kwargs)

    return allow_in_graph(traced)
