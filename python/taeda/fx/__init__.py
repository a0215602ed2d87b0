"""Graphs of programs: names so that programs can be imported; capture is not there."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function
from taeda.nn import Module

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
Graph = absent_class("fx.Graph")
GraphModule = absent_class("fx.GraphModule", Module)
Interpreter = absent_class("fx.Interpreter")
Node = absent_class("fx.Node")
Proxy = absent_class("fx.Proxy")
Tracer = absent_class("fx.Tracer")
Transformer = absent_class("fx.Transformer", Interpreter)
map_arg = absent_function("fx.map_arg")
replace_pattern = absent_function("fx.replace_pattern")
symbolic_trace = absent_function("fx.symbolic_trace")


def wrap(fn_or_name):
    """Marks a function as one call of a captured graph; gives it back."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or a "
            "string name"
        )
    return fn_or_name


def has_side_effect(fn):
    """Marks a function as one whose calls must stay in a graph; gives it back."""
    return fn
