"""Functions of functions: derivatives and mapping over a batch.

The transforms nest in any order; each runs the function once, in a level of its own
(csrc/functorch).
"""

from __future__ import annotations

from taeda._functorch.derivatives import (
    grad,
    grad_and_value,
    jvp,
    linearize,
    vjp,
)
from taeda._functorch.functionalize import functionalize
from taeda._functorch.jacobians import hessian, jacfwd, jacrev
from taeda._functorch.levels import debug_unwrap
from taeda._functorch.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from taeda._functorch.vmap import vmap
from taeda._lazy import attributes

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
_LATER = {"rearrange": "._functorch.rearrange"}
__all__ += list(_LATER)
__getattr__ = attributes(__name__, _LATER)
