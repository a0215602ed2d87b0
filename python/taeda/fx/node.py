"""The place where PyTorch has these names."""

from __future__ import annotations

from taeda.fx import Node, map_arg

__all__ = ["Node", "map_arg"]
