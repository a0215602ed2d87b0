"""Functions of functions: derivatives and mapping over a batch.

Derivatives are those of `autograd.grad`; `vmap` calls the function for each element and
stacks what it returns.
"""

from __future__ import annotations

from taeda._absent import absent_function
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

__all__ = [
    "functional_call",
    "functionalize",
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
functionalize = absent_function("func.functionalize")
