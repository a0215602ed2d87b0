"""Automatic mixed precision."""

from __future__ import annotations

from taeda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from taeda.amp.grad_scaler import GradScaler
from taeda.amp.state import is_autocast_available

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
