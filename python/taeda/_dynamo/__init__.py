"""The compiler's controls under the name that older programs use."""

from __future__ import annotations

from taeda._lazy import attributes
from taeda.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

from . import eval_frame, exc
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "disable",
    "eval_frame",
    "exc",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "reset",
]
__getattr__ = attributes(__name__)


def _marked(t, index, name: str) -> None:
    dims = (index,) if isinstance(index, int) else index
    marks = vars(t).setdefault(name, set())
    marks.update(d % max(t.dim(), 1) for d in dims)


def mark_dynamic(t, index) -> None:
    """Says that the size of a dim may be any: it becomes a symbol of its own.

    Args:
        t: a tensor.
        index: a dim, or a list of dims.
    """
    _marked(t, index, "_dynamo_dynamic_indices")


def mark_static(t, index=None) -> None:
    """Says that the size of a dim stays what it is.

    Args:
        t: a tensor.
        index: a dim, or a list of dims; all of them by default.
    """
    _marked(t, range(t.dim()) if index is None else index, "_dynamo_static_indices")


def graph_break(msg: str = "") -> None:
    """Ends a captured graph; code that runs eagerly passes it by."""
