"""Automatic mixed precision."""

from __future__ import annotations

from taeda.amp.autocast_mode import _enter_autocast as _enter_autocast
from taeda.amp.autocast_mode import _exit_autocast as _exit_autocast
from taeda.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from taeda.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
