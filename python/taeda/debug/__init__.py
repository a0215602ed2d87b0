"""For finding out what is wrong: the first NaN, the shapes of a model."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["nan_guard", "summary"]
_WHERE = {"nan_guard": "_nan_guard", "summary": "_summary"}
__getattr__ = attributes(__name__, _WHERE)


def __dir__():
    return sorted({*globals(), *_WHERE})
