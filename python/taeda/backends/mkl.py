"""Intel's MKL, which this build does not use."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
