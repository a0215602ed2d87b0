"""Comparisons and test data."""

from __future__ import annotations

from taeda._lazy import attributes
from taeda.testing._comparison import assert_allclose, assert_close
from taeda.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
__getattr__ = attributes(
    __name__, {"FileCheck": "_file_check"}, submodules=("_internal",)
)
