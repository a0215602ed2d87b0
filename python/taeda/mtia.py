"""Meta's accelerators, which this build does not use."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "is_initialized"]


def is_available() -> bool:
    """Whether an accelerator can be used: not in this build."""
    return False


def is_initialized() -> bool:
    """Whether the devices have been set up: never."""
    return False


def device_count() -> int:
    """The number of accelerators that can be used."""
    return 0
