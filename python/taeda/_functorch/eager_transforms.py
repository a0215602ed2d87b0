"""Under PyTorch's name: the transforms by derivatives."""

from __future__ import annotations

from taeda._functorch.derivatives import jvp, linearize, vjp
from taeda._functorch.functionalize import functionalize
from taeda._functorch.jacobians import hessian, jacfwd, jacrev
from taeda._functorch.levels import debug_unwrap

__all__ = [
    "debug_unwrap",
    "functionalize",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]
