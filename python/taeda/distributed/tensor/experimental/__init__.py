"""Parts of distributed tensors whose names may still change."""

from __future__ import annotations

__all__ = []
