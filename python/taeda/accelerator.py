"""The accelerator in use, whichever it is: none in this build."""

from __future__ import annotations

__all__ = ["current_accelerator", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is one."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def current_accelerator(check_available: bool = False):
    """Its device; None."""
    return None


def synchronize(device=None) -> None:
    """Wait for it.

    Raises:
        RuntimeError: there is none.
    """
    raise RuntimeError("Cannot access accelerator device when none is available.")
