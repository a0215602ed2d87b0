"""Under PyTorch's name: grad, grad_and_value and vmap."""

from __future__ import annotations

from taeda._functorch.derivatives import grad, grad_and_value
from taeda._functorch.vmap import vmap

__all__ = ["grad", "grad_and_value", "vmap"]
