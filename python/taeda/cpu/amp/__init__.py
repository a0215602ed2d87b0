"""Old names of `taeda.amp`, for the CPU."""

from __future__ import annotations

import taeda
from taeda._lazy import attributes
from taeda.amp._old_names import names_of

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler = names_of("cpu", taeda.bfloat16)
__getattr__ = attributes(__name__, None, ("autocast_mode", "grad_scaler"))
