"""Functions of functions: derivatives and mapping over a batch.

Derivatives are those of `autograd.grad`; `vmap` calls the function for each element and
stacks what it returns.
"""

from __future__ import annotations

from taeda._functorch.derivatives import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from taeda._functorch.modules import functional_call, stack_module_state
from taeda._functorch.vmap import vmap
from taeda._lazy import attributes

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
__getattr__ = attributes(__name__)
