"""What wraps compiled modules."""

from __future__ import annotations

from taeda._absent import absent_class
from taeda.nn import Module

__all__ = ["OptimizedModule", "is_dynamo_supported"]

OptimizedModule = absent_class("_dynamo.eval_frame.OptimizedModule", Module)


def is_dynamo_supported() -> bool:
    """Whether Python code can be captured: not yet."""
    return False
