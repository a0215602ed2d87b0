"""PyTorch's old module of `GradScaler`."""

from __future__ import annotations

from taeda.cuda.amp import GradScaler

__all__ = ["GradScaler"]
