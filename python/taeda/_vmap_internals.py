"""`vmap` by the place that it had in PyTorch before `torch.func`."""

from __future__ import annotations

from taeda.func import vmap

__all__ = ["vmap"]
