"""The old place of `taeda.library.get_ctx`."""

from __future__ import annotations

from taeda.library import get_ctx

__all__ = ["get_ctx"]
