"""Tensors that have shapes and no data: none can be made."""

from __future__ import annotations

from taeda._absent import absent_class

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]
FakeTensor = absent_class("_subclasses.fake_tensor.FakeTensor")
FakeTensorMode = absent_class("_subclasses.fake_tensor.FakeTensorMode")


def is_fake(x) -> bool:
    """Whether a tensor has no data of its own: never."""
    return False
