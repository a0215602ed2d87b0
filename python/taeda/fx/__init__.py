"""Graphs of programs: marks that programs put on functions; capture is not there."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["has_side_effect", "wrap"]
__getattr__ = attributes(__name__, submodules=("experimental",))


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
