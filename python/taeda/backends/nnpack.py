"""NNPACK, which this build does not use; its switch is kept as programs set it."""

from __future__ import annotations

from ._switches import Kept, flag_functions

__all__ = ["flags", "is_available", "set_flags"]


def is_available() -> bool:
    """Whether it can be used: not in this build."""
    return False


set_flags, flags = flag_functions(
    {"enabled": Kept("enabled", True)}, {"enabled": False}
)
