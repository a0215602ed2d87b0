"""Modules at other workers, under the name of PyTorch's folder."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["remote_module"]
__getattr__ = attributes(__name__, submodules=("remote_module",))
