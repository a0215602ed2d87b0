"""PyTorch's old module of `autocast`."""

from __future__ import annotations

from taeda.cpu.amp import autocast

__all__ = ["autocast"]
