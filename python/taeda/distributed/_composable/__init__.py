"""Parallel training of a module in place, without a wrapper around it."""

from __future__ import annotations

from .checkpoint_activation import checkpoint
from .contract import _get_registry, contract
from .replicate import replicate

__all__ = ["_get_registry", "checkpoint", "contract", "replicate"]
