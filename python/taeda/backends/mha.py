"""The fused path of multi-head attention in inference.

The switch is a permission to use such a path. This build has none: its attention layers
run the same operators whether or not they train, and so it is never used.
"""

from __future__ import annotations

from ._switches import Kept

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
_fastpath = Kept("set_fastpath_enabled", True)


def get_fastpath_enabled() -> bool:
    """Whether it may be used."""
    return _fastpath.read()


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid it."""
    _fastpath.write(value)
