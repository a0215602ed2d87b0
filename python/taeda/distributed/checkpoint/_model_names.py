"""Names of parameters as they were before a model was wrapped."""

from __future__ import annotations

from typing import Any

from taeda import nn
from taeda._own import is_own_module

__all__ = ["canonical", "fsdp_context", "is_wrapped_by_fsdp"]

# Wrappers, by class name, and where they keep what they wrap. They are found by name so
# that no wrapper is imported for models without.
_WRAPPERS = {
    "DistributedDataParallel": "module",
    "OptimizedModule": "_orig_mod",
    "FullyShardedDataParallel": "_fsdp_wrapped_module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
    "OffloadWrapper": "_checkpoint_wrapped_module",
}


def _inner(module: Any) -> str | None:
    """Where a wrapper keeps its module; None for what is no wrapper."""
    for kind in type(module).__mro__:
        if kind.__name__ in _WRAPPERS and is_own_module(kind.__module__):
            return _WRAPPERS[kind.__name__]
    return None


def canonical(model: nn.Module, name: str, modifiers: str = "_fqn_modifiers") -> str:
    """The name without the parts that wrappers put into it.

    Args:
        name (str): of a parameter, buffer or module of `model`.
        modifiers (str): a method of modules that says which names of theirs are left
            out of names: {name: attribute that is walked into first}.
    """
    found, place = [], model
    for part in name.split("."):
        inner = _inner(place)
        # Some wrappers leave their part out of the names themselves.
        while inner is not None and part != inner:
            place = getattr(place, inner)
            inner = _inner(place)
        if inner is None:
            if hasattr(place, modifiers):
                through = getattr(place, modifiers)().get(part)
                place = getattr(place, through, place) if through else place
            found.append(part)
        place = getattr(place, part, None)
    return ".".join(found)


def is_wrapped_by_fsdp(model: nn.Module) -> bool:
    """Is a module in it wrapped by FullyShardedDataParallel?"""
    return any(_inner(m) == "_fsdp_wrapped_module" for m in model.modules())


def fsdp_context(model: nn.Module, options: Any):
    """In it, states of a model wrapped by FSDP are whole or spread, as options say."""
    from contextlib import nullcontext

    if not is_wrapped_by_fsdp(model):
        return nullcontext()
    from taeda.distributed import fsdp

    cpu = {"offload_to_cpu": options.cpu_offload}
    if options.full_state_dict:
        kind = fsdp.StateDictType.FULL_STATE_DICT
        of_model = fsdp.FullStateDictConfig(rank0_only=options.cpu_offload, **cpu)
        first = options.cpu_offload or options.broadcast_from_rank0
        of_optimizer = fsdp.FullOptimStateDictConfig(rank0_only=first, **cpu)
    else:
        kind = fsdp.StateDictType.SHARDED_STATE_DICT
        of_model = fsdp.ShardedStateDictConfig(**cpu)
        of_optimizer = fsdp.ShardedOptimStateDictConfig(**cpu)
    wrapper = fsdp.FullyShardedDataParallel
    return wrapper.state_dict_type(model, kind, of_model, of_optimizer)
