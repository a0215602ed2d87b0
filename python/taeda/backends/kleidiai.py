"""ARM's kernels for products, which this build does not use."""

from __future__ import annotations


def is_available() -> bool:
    """Whether they can be used: not in this build."""
    return False
