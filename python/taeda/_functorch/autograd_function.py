"""Under PyTorch's name: custom functions in vmap."""

from __future__ import annotations

from taeda._functorch.custom_function import VmapInfo

__all__ = ["VmapInfo"]
