"""The place where PyTorch has these names."""

from __future__ import annotations

from taeda.fx import Proxy

__all__ = ["Proxy"]
