"""Arrays of what a summary is made of, by PyTorch's name."""

from __future__ import annotations

from ._arrays import to_numpy as make_np

__all__ = ["make_np"]
