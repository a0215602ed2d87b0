"""State dicts of wrapped models: whole, in shards, or this rank's parts."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import taeda
from taeda.distributed._shard.sharded_tensor import ShardedTensor

from ._slots import plain_name
from ._summon import Opening, whole_parameters
from .api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "clean",
    "get_type",
    "loading",
    "register",
    "rows_of",
    "set_type",
    "state_dict",
    "whole_of",
]

_INNER = "_fsdp_wrapped_module."
_FLAT = "_flat_param"
_CONFIGS = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (
        ShardedStateDictConfig,
        ShardedOptimStateDictConfig,
    ),
}


def clean(name: str) -> str:
    """A name as the unwrapped model has it."""
    return name.replace(_INNER, "")


# Which type.


def register(wrapper) -> None:
    """What a new wrapper needs for its state dicts."""
    kind = StateDictType.FULL_STATE_DICT
    model, optimizer = (config() for config in _CONFIGS[kind])
    wrapper._settings = StateDictSettings(kind, model, optimizer)
    wrapper._opening = None
    wrapper._register_load_state_dict_pre_hook(_before_load, with_module=True)
    wrapper.register_load_state_dict_post_hook(_after_load)


def set_type(wrappers, kind, model=None, optimizer=None) -> StateDictSettings:
    """See `FullyShardedDataParallel.set_state_dict_type`."""
    wanted = _CONFIGS[kind]
    names = "state_dict_config", "optim_state_dict_config"
    given = []
    for name, cls, config in zip(names, wanted, (model, optimizer), strict=True):
        config = cls() if config is None else config
        if type(config) is not cls:
            raise RuntimeError(f"Expected {name} of type {cls} but got {type(config)}")
        given.append(config)
    before = get_type(wrappers) if wrappers else StateDictSettings(None, None, None)  # type: ignore[arg-type]
    for wrapper in wrappers:
        if wrapper._mesh is not None and kind is StateDictType.SHARDED_STATE_DICT:
            for config in given:
                config._use_dtensor = True
        wrapper._settings = StateDictSettings(kind, *given)
    return before


def get_type(wrappers) -> StateDictSettings:
    """See `FullyShardedDataParallel.get_state_dict_type`."""
    if not wrappers:
        return StateDictSettings(None, None, None)  # type: ignore[arg-type]
    first = wrappers[0]._settings
    for wrapper in wrappers[1:]:
        if wrapper._settings != first:
            raise AssertionError(
                "All FSDP modules must have the same state dict settings.Got "
                f"{wrapper._settings} and {first}."
            )
    return first


# Saving.


def rows_of(whole, wrapper):
    """This rank's rows of a whole tensor, as a ShardedTensor or a DTensor."""
    ranks = wrapper._ranks
    group = ranks.shard or ranks.copies
    step = -(-whole.shape[0] // group.size())
    start = min(group.rank() * step, whole.shape[0])
    rows = min(step, whole.shape[0] - start)
    piece = whole.narrow(0, start, rows).clone()
    if wrapper._mesh is None:
        return ShardedTensor.of_rows(whole.shape, piece, group)
    from taeda.distributed.tensor import DTensor, Replicate, Shard

    placements = (Replicate(),) * (wrapper._mesh.ndim - 1) + (Shard(0),)
    return DTensor.from_local(
        piece,
        wrapper._mesh,
        placements,
        run_check=False,
        shape=whole.shape,
        stride=whole.contiguous().stride(),
    )


def whole_of(value):
    """The whole of a ShardedTensor or DTensor; others as they are."""
    if isinstance(value, ShardedTensor):
        return value.whole()
    if hasattr(value, "full_tensor"):
        return value.full_tensor()
    return value


def state_dict(wrapper, collect, args, kwargs):
    """`Module.state_dict` of a wrapper.

    Args:
        wrapper: it.
        collect: the base class's method, bound.
        args, kwargs: what it is given.
    """
    if args:
        kwargs.update(zip(("destination", "prefix", "keep_vars"), args, strict=False))
    prefix = kwargs.get("prefix", "")
    settings, group = wrapper._settings, wrapper._group
    kind, config = settings.state_dict_type, settings.state_dict_config
    is_local = kind is StateDictType.LOCAL_STATE_DICT and wrapper._ranks.world > 1
    is_whole = group is not None and not is_local and not wrapper._is_summoned
    if group is not None and is_local:
        group.free()
    with whole_parameters([wrapper], False) if is_whole else nullcontext():
        found = collect(**kwargs)
        if group is not None and is_whole:
            # Those that the wrapped module's buffers and states are not.
            own = {prefix + _INNER + plain_name(s.name) for s in group.layout.slots}
        else:
            own = set()
    keys = [key for key in found if key.startswith(prefix + _INNER)]
    if getattr(config, "rank0_only", False) and wrapper.rank != 0:
        for key in keys:
            del found[key]
        return found
    in_shards = kind is StateDictType.SHARDED_STATE_DICT and wrapper._ranks.world > 1
    for key in keys:
        value = found.pop(key)
        if in_shards and key in own and value.dim():
            value = rows_of(value, wrapper)
        found[prefix + key[len(prefix) + len(_INNER) :]] = value
    if group is not None and is_local:
        _save_flat(group, found, prefix)
    _finish(wrapper, found, prefix, config, kind)
    return found


def _save_flat(group, found, prefix) -> None:
    layout = group.layout
    row = layout.row().detach()
    here = min(row.numel(), max(0, layout.total - layout.rank * layout.length))
    row = row.narrow(0, 0, here)
    shards = ShardedTensor.of_rows([layout.total], row, group.ranks.shard)
    found[prefix + _FLAT] = shards


def _finish(wrapper, found, prefix, config, kind) -> None:
    """Names of the metadata, dtypes of buffers, and the move to the CPU."""
    metadata = getattr(found, "_metadata", None)
    if metadata is not None:
        inner = prefix + _INNER
        for key in [k for k in metadata if (k + ".").startswith(inner)]:
            metadata[clean(key + ".").rstrip(".")] = metadata.pop(key)
    if kind is not StateDictType.LOCAL_STATE_DICT:
        for path, module in wrapper.module.named_modules():
            for name in module._buffers:
                dtype = wrapper._buffer_dtypes.get((id(module), name))
                key = prefix + plain_name(f"{path}.{name}" if path else name)
                if dtype is not None and key in found:
                    found[key] = found[key].to(dtype)
    if config.offload_to_cpu:
        for key, value in list(found.items()):
            if key.startswith(prefix) and isinstance(value, taeda.Tensor):
                found[key] = value.cpu()


# Loading.


def _before_load(wrapper, state, prefix, *_rest) -> None:
    inner = prefix + _INNER
    for key in [key for key in state if key.startswith(prefix)]:
        state[inner + key[len(prefix) :]] = state.pop(key)
    group = wrapper._group
    if group is None:
        return
    kind = wrapper._settings.state_dict_type
    if kind is StateDictType.LOCAL_STATE_DICT and wrapper._ranks.world > 1:
        _load_flat(group, state, inner)
        return
    for slot in group.layout.slots:
        key = inner + plain_name(slot.name)
        if key in state:
            state[key] = whole_of(state[key])
    if not wrapper._is_summoned:
        wrapper._opening = Opening(wrapper, True, False, False, False)


def _load_flat(group, state, inner) -> None:
    group.free()
    value = state.get(inner + _FLAT)
    if isinstance(value, ShardedTensor):
        row = group.layout.row().clone()
        with taeda.no_grad():
            for shard in value.local_shards():
                row.narrow(0, 0, shard.tensor.numel()).copy_(shard.tensor)
        value = row
    if value is None:
        return
    if not group.layout.keeps_originals:
        state[inner + _FLAT] = value
        return
    del state[inner + _FLAT]
    with taeda.no_grad():
        group.layout.row().copy_(value)


def _after_load(wrapper, keys) -> None:
    for names in keys:
        names[:] = [clean(name) for name in names]
    close(wrapper)


def close(wrapper) -> None:
    """Ends what a load has opened."""
    opening, wrapper._opening = wrapper._opening, None
    if opening is not None:
        opening.close()


@contextmanager
def loading(root):
    """Closes what a load that failed has left open below."""
    try:
        yield
    finally:
        for wrapper in type(root).fsdp_modules(root):
            close(wrapper)
