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
    "reset",
]
__getattr__ = attributes(__name__)


def graph_break(msg: str = "") -> None:
    """Ends a captured graph; code that runs eagerly passes it by."""
