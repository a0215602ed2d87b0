"""NVIDIA's library for half-empty matrices, which this build does not use."""

from __future__ import annotations

__all__ = ["get_max_alg_id", "is_available", "version"]


def version() -> int | None:
    """Its version; None where it is not there."""
    return None


def is_available() -> bool:
    """Whether it can be used: not in this build."""
    return False


def get_max_alg_id() -> int | None:
    """The number of its last algorithm; None where it is not there."""
    return None
