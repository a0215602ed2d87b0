"""Under PyTorch's name: grad, grad_and_value, vmap and chunk_vmap."""

from __future__ import annotations

from taeda._functorch.derivatives import grad, grad_and_value
from taeda._functorch.vmap import chunk_vmap, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
