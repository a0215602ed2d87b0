"""PyTorch's old module of `autocast`."""

from __future__ import annotations

from taeda.cuda.amp import autocast, custom_bwd, custom_fwd

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
