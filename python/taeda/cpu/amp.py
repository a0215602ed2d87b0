"""Old names of `taeda.amp`, for the CPU."""

from __future__ import annotations

import taeda
from taeda.amp._old_names import names_of

__all__ = ["GradScaler", "autocast"]

autocast, GradScaler = names_of("cpu", taeda.bfloat16)
