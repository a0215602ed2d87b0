"""Marks on functions that capture heeds, and errors that breaks are made."""

from __future__ import annotations

import functools
import threading
import types

__all__ = [
    "ALLOWED",
    "DISALLOWED",
    "LOCK",
    "SUBSTITUTES",
    "disabled",
    "error_on_graph_break",
]

# Read by capture, in C++; the interpreter's lock guards them. Functions that graphs
# hold as they are, those that end a graph, and those that stand for others.
ALLOWED: set = set()
DISALLOWED: set = set()
SUBSTITUTES: dict = {}
# Held by whoever captures or compiles.
LOCK = threading.RLock()


def original(fn):
    """What a compiled or disabled function was made of; anything else itself."""
    if isinstance(fn, types.MethodType):
        function = original(fn.__func__)
        same = function is fn.__func__
        return fn if same else types.MethodType(function, fn.__self__)
    return getattr(fn, "_torchdynamo_orig_callable", fn)


def disabled(fn, recursive: bool, reason: str | None):
    """A function that calls another, which no graph will hold."""
    fn = original(fn)

    def outside(*args, **kwargs):
        return fn(*args, **kwargs)

    functools.update_wrapper(outside, fn)
    outside._torchdynamo_disable = True
    outside._torchdynamo_disable_msg = reason
    outside._torchdynamo_disable_recursive = recursive
    outside._torchdynamo_orig_callable = fn
    return outside


# By this code object capture knows such functions.
DISABLED_CODE = next(
    c for c in disabled.__code__.co_consts if isinstance(c, types.CodeType)
)


class error_on_graph_break:
    """A context or decorator that says whether the end of a graph is an error.

    It holds for this thread, and for compiled code where that enters it. Under
    `fullgraph=True` breaks stay errors.

    Args:
        error: whether a graph that ends before its function raises Unsupported.

    Example:
        >>> with taeda._dynamo.error_on_graph_break(True):
        ...     taeda.compile(lambda x: x + 1)(taeda.ones(1))
        tensor([2.])
    """

    def __init__(self, error: bool) -> None:
        self.error = error
        self._before: list[bool] = []

    def __enter__(self) -> None:
        from taeda._capture import set_strict

        self._before.append(set_strict(self.error))

    def __exit__(self, *error) -> None:
        from taeda._capture import set_strict

        set_strict(self._before.pop())

    def __call__(self, fn):
        error = self.error

        @functools.wraps(fn)
        def under(*args, **kwargs):
            with error_on_graph_break(error):
                return fn(*args, **kwargs)

        return under


def check_substitute(original, polyfill) -> None:
    """Raises TypeError where two functions take different arguments."""
    import inspect

    try:
        theirs = inspect.signature(original)
    except (TypeError, ValueError):
        return
    ours = inspect.signature(polyfill)

    def shape(signature):
        return [
            (p.name, p.kind, p.default is not p.empty)
            for p in signature.parameters.values()
        ]

    if shape(theirs) != shape(ours):
        raise TypeError(
            f"substitute_in_graph: Signature mismatch between {original} and "
            f"{polyfill}: {theirs} vs {ours}"
        )
