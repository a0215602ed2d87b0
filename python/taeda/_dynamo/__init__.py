"""The compiler's controls under the name that older programs use; all runs eagerly."""

from __future__ import annotations

import taeda
from taeda.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

from . import config, eval_frame, exc
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "exc",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]


def graph_break(msg: str = "") -> None:
    """Ends a captured graph; nothing is captured."""


def disallow_in_graph(fn):
    """Keeps a function out of graphs: itself."""
    return fn


forbid_in_graph = disallow_in_graph


def _mark(t, index=None, **bounds) -> None:
    """A remark on a tensor for graphs; there are none."""


mark_dynamic = maybe_mark_dynamic = mark_static = mark_static_address = _mark


def optimize(*args, **kwargs):
    """A decorator that compiles a function."""
    return lambda fn: taeda.compile(fn)
