"""The place where PyTorch has these names."""

from __future__ import annotations

from taeda.fx import Graph

__all__ = ["Graph"]
