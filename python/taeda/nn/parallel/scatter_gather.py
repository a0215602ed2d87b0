"""PyTorch's module of `scatter` and `gather`."""

from __future__ import annotations

from .data_parallel import gather, scatter

__all__ = ["gather", "scatter"]
