"""Helpers of test suites."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["common_device_type", "common_dtype", "common_utils", "logging_tensor"]
__getattr__ = attributes(__name__, submodules=__all__)
