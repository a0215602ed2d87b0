"""What `import functorch` means under `as_torch`: the package before `torch.func`."""

from __future__ import annotations

import functools
import warnings

from taeda import func
from taeda._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from taeda.fx.experimental.proxy_tensor import make_fx

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


def _former(name: str, place: str = "torch.func"):
    """A function of `taeda.func` that says where it is now when it is called."""
    own = getattr(func, name)

    @functools.wraps(own)
    def warned(*args, **kwargs):
        warnings.warn(
            f"functorch.{name} is deprecated. Please use `{place}.{name}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return own(*args, **kwargs)

    return warned


functionalize = _former("functionalize")
grad = _former("grad")
grad_and_value = _former("grad_and_value")
hessian = _former("hessian")
jacfwd = _former("jacfwd")
jacrev = _former("jacrev")
jvp = _former("jvp")
vjp = _former("vjp")
vmap = _former("vmap", "torch")
