"""Tensors that have shapes and no data: none can be made."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["is_fake"]
__getattr__ = attributes(__name__)


def is_fake(x) -> bool:
    """Whether a tensor has no data of its own: never."""
    return False
