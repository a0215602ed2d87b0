"""What `functorch.experimental.control_flow` means under `as_torch`."""

from __future__ import annotations

from taeda._higher_order_ops import cond, map

__all__ = ["cond", "map"]
