"""Tensor parallelism of modules."""

from __future__ import annotations

__all__ = []
