"""Types of sparse CUDA tensors by their old names: none can be made."""

from __future__ import annotations

from taeda._compat.cuda_types import sparse_types

__all__ = list(sparse_types)
globals().update(sparse_types)
