"""PyTorch's old module of `GradScaler`."""

from __future__ import annotations

from taeda.cpu.amp import GradScaler

__all__ = ["GradScaler"]
