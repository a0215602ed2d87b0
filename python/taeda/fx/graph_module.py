"""The place where PyTorch has these names."""

from __future__ import annotations

from taeda.fx import GraphModule

__all__ = ["GraphModule"]
