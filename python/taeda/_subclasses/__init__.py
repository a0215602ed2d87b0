"""Tensors without data: not in this build."""

from __future__ import annotations

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
