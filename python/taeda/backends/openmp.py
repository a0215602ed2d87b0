"""OpenMP, which runs the threads of operators."""

from __future__ import annotations


def is_available() -> bool:
    """True."""
    return True
