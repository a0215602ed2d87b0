"""Controls of `compile`, whose only backend so far runs programs as they are."""

from __future__ import annotations

from taeda._compile import compile
from taeda._lazy import attributes

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
]
__getattr__ = attributes(__name__)


def is_compiling() -> bool:
    """Whether a graph is being captured: never, while programs run eagerly."""
    return False


def is_dynamo_compiling() -> bool:
    """As `is_compiling`."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported."""
    return False


def reset() -> None:
    """Forgets compiled code, of which there is none."""


def cudagraph_mark_step_begin() -> None:
    """Marks where an iteration starts, for CUDA graphs, of which there are none."""


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """Names of the compiler's backends.

    Args:
        exclude_tags: kinds to leave out; None or () leaves out none.

    Example:
        >>> taeda.compiler.list_backends(None)
        ['eager']
    """
    return [] if "debug" in (exclude_tags or ()) else ["eager"]


def _callable(fn, what: str):
    if not callable(fn):
        raise AssertionError(f"{what} expects a callable, got {type(fn).__name__}")
    return fn


def disable(fn=None, recursive: bool = True, *, reason: str | None = None):
    """The function, which no graph will hold; without it, a decorator.

    Args:
        fn: a function or module.
        recursive: for the functions that it calls, too.
        reason: said where a graph ends.

    Raises:
        AssertionError: something that cannot be called.
    """
    if fn is None:
        return lambda function: disable(function, recursive, reason=reason)
    return _callable(fn, "disable")


def allow_in_graph(fn):
    """The function (or list of them), which graphs will take as it is.

    Raises:
        AssertionError: something that cannot be called.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    return _callable(fn, "allow_in_graph")


def assume_constant_result(fn):
    """The function, whose result graphs will take for a constant."""
    fn._dynamo_marked_constant = True
    return fn
