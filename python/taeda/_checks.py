"""Checks of tensors' elements, which a compiled graph makes after it has run.

Eagerly a check reads the elements and raises where it is met. While a graph is traced
nothing can be read: the condition becomes one more output of it (`collected`), and the
graph's caller raises (`compiler/_checks.py`).
"""

from __future__ import annotations

import contextlib
import threading

__all__ = ["collected", "is_collecting", "makes_checks", "may_refuse", "refuse_any"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Function = TypeVar("Function")

# Of the thread: the conditions that a trace collects, as `pending`.
_local = threading.local()


def makes_checks(function: Function) -> Function:
    """Decorator of each function that calls `refuse_any`."""
    function._makes_checks = True  # type: ignore[attr-defined]
    return function


def may_refuse(function) -> bool:
    """Whether a call of a function makes checks."""
    return getattr(function, "_makes_checks", False) is True


def is_collecting() -> bool:
    """Whether the conditions of checks become outputs of a graph."""
    return getattr(_local, "pending", None) is not None


@makes_checks
def refuse_any(condition, error: Exception) -> None:
    """Raises an error if any element of a tensor is true.

    Tensors on the device "meta" have no elements and are let through.
    """
    pending = getattr(_local, "pending", None)
    if pending is not None:
        pending.append((condition.any(), error))
    elif not condition.is_meta and bool(condition.any()):
        raise type(error)(*error.args)


@contextlib.contextmanager
def collected():
    """A list, to which checks of this thread add (condition, error) meanwhile."""
    before = getattr(_local, "pending", None)
    _local.pending = pending = []
    try:
        yield pending
    finally:
        _local.pending = before
