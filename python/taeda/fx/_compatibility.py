"""The mark of a stable interface, which libraries put on what they build upon FX."""

from __future__ import annotations

__all__ = ["compatibility"]


def compatibility(is_backward_compatible: bool):
    """A decorator that notes on a function or class whether its interface is stable."""

    def mark(obj):
        obj._backward_compatible = is_backward_compatible
        return obj

    return mark
