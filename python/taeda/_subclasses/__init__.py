"""Tensors without data: none can be made."""

from __future__ import annotations

from taeda._lazy import attributes

__all__: list[str] = []
__getattr__ = attributes(__name__, submodules=("fake_tensor",))
