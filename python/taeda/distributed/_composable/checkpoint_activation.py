"""Recomputation in the backward pass, of a module in place."""

from __future__ import annotations

import taeda

from .contract import contract

__all__ = ["checkpoint"]

_OPTIONS = ("context_fn", "debug", "determinism_check", "early_stop")


@contract()
def checkpoint(module, **kwargs):
    """Computes what a module's forward pass saves again in the backward pass.

    Hooks of the module run outside of what is computed again.

    Args:
        module: it.
        kwargs: of `taeda.utils.checkpoint.checkpoint`.

    Raises:
        NotImplementedError: `use_reentrant=True`.
        ValueError: an argument that is not known.
    """
    from taeda.utils.checkpoint import checkpoint as run_again

    if kwargs.pop("use_reentrant", False):
        raise NotImplementedError(
            "use_reentrant=True is not supported in composable checkpoint. Please use "
            f"{taeda.__name__}.utils.checkpoint.checkpoint instead."
        )
    unknown = [name for name in kwargs if name not in (*_OPTIONS, "preserve_rng_state")]
    if unknown:
        raise ValueError("Unexpected keyword arguments: " + ",".join(unknown))
    inner = module.forward

    def forward(*args, **inputs):
        return run_again(inner, *args, use_reentrant=False, **kwargs, **inputs)

    module.__dict__["forward"] = forward
    return module
