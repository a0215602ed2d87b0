"""What a wrapper finds out before it splits its module's parameters."""

from __future__ import annotations

import os

import taeda
from taeda.distributed import _collectives as collectives
from taeda.distributed._join import _get_default_group
from taeda.distributed._subgroups import new_subgroups, new_subgroups_by_enumeration

from ._group import Ranks
from ._slots import managed_modules, slots_of, unit_of
from .api import ShardingStrategy

__all__ = [
    "HYBRID",
    "check_tensors",
    "choose_device",
    "find_ranks",
    "ignored_of",
    "materialize",
    "send_from_first",
]

HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


def ignored_of(module, modules, states) -> tuple[set, set]:
    """(modules, parameters) that are left alone.

    Raises:
        ValueError: both kinds of argument are given, or something that is no module.
    """
    if modules is not None and states is not None:
        raise ValueError(
            "Cannot pass both ignored_modules and ignored_states at the same time. "
            "Please just pass ignored_states."
        )
    given = list(modules if modules is not None else states or ())
    kinds = {isinstance(item, taeda.nn.Module) for item in given}
    if states is not None and kinds == {True, False}:
        raise ValueError(
            "ignored_states expects all nn.Parameter or all nn.Module list elements, "
            f"but got types {[type(item) for item in given]}"
        )
    if states is not None and kinds == {False}:
        for item in given:
            if not isinstance(item, taeda.nn.Parameter):
                raise ValueError(
                    "ignored_states expects all nn.Parameter or all nn.Module list "
                    f"elements, but got types {[type(item)]}"
                )
        return set(), set(given)
    for item in given:
        if not isinstance(item, taeda.nn.Module):
            raise ValueError(
                "ignored_modules should be an iterable of nn.Modules, but got "
                f"{type(item)}"
            )
        if unit_of(item) is not None:
            raise ValueError("`ignored_modules` should not include FSDP modules")
    if module in given:
        import warnings

        warnings.warn(
            "Trying to ignore the top-level module passed into the FSDP constructor "
            "itself will result in all parameters being ignored and is not "
            f"well-supported: {module}",
            stacklevel=4,
        )
    below = {m for item in given for _, m in managed_modules([item])}
    return below, {p for m in below for p in m._parameters.values() if p is not None}


def choose_device(module, ignored, device_id):
    """The device of computation.

    Raises:
        RuntimeError: the parameters lie on several.
    """
    if device_id is not None:
        if isinstance(device_id, int):
            return taeda.device("cuda", device_id)
        return taeda.device(device_id)
    places = {
        p.device for p in module.parameters() if p not in ignored and not p.is_meta
    }
    if len(places) > 1:
        raise RuntimeError(
            "FSDP: expected the module's parameters on one device, got "
            f"{sorted(map(str, places))}; move the module or pass device_id"
        )
    return places.pop() if places else taeda.device("cpu")


def find_ranks(strategy, group, mesh, has_policy: bool) -> Ranks:
    """Who shares the parameters and who has copies.

    Raises:
        ValueError: arguments that contradict each other.
    """
    if group is not None and mesh is not None:
        raise ValueError(
            "Cannot pass both process_group and device_mesh at the same time. Please "
            "just pass only one of them."
        )
    if strategy in HYBRID:
        if mesh is not None:
            if mesh.ndim != 2:
                raise ValueError(
                    f"Expected device_mesh to have ndim=2 but got {mesh.ndim}"
                )
            return Ranks(mesh.get_group(1), mesh.get_group(0))
        if group is None:
            if not has_policy:
                raise ValueError(
                    f"Manual wrapping with {strategy} requires explicit specification "
                    "of process group or device_mesh."
                )
            return Ranks(*_by_host())
        if not (isinstance(group, tuple) and len(group) == 2):
            raise ValueError(
                "Expected process_group to be passed in as either None or Tuple"
                f"[dist.ProcessGroup, dist.ProcessGroup] but got {type(group)}"
            )
        return Ranks(*group)
    if mesh is not None:
        if mesh.ndim != 1:
            raise ValueError(f"Expected device_mesh to have ndim=1 but got {mesh.ndim}")
        group = mesh.get_group(0)
    group = group or _get_default_group()
    if strategy is ShardingStrategy.NO_SHARD:
        return Ranks(None, group)
    return Ranks(group)


def _by_host():
    """(the ranks of this host, those of equal places on all hosts)."""
    world = _get_default_group().size()
    size = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    if world % size:
        raise ValueError(f"FSDP: {world} ranks are no multiple of {size} per host")
    inner, _ = new_subgroups(size)
    rows = [list(range(start, world, size)) for start in range(size)]
    outer, _ = new_subgroups_by_enumeration(rows)
    return inner, outer


def materialize(module, init, ignored_modules, device) -> None:
    """Gives parameters and buffers on the meta device values on `device`.

    Args:
        module: a unit's.
        init: called with each module; None makes memory and calls `reset_parameters`.
        ignored_modules: left alone.
        device: for the default.
    """
    below = [m for _, m in managed_modules([module], ignored_modules)]

    def own(m):
        return [
            t for t in (*m._parameters.values(), *m._buffers.values()) if t is not None
        ]

    if not any(t.is_meta for m in below for t in own(m)):
        return
    if init is not None:
        if not callable(init):
            raise ValueError(f"Expected {init} to be callable but got {type(init)}")
        for m in below:
            init(m)
        return
    with taeda.no_grad():
        for m in below:
            if any(t.is_meta for t in own(m)):
                m.to_empty(device=device, recurse=False)
                if not hasattr(m, "reset_parameters"):
                    raise NotImplementedError(
                        f"FSDP: {type(m).__name__} has no reset_parameters() to call "
                        "after it left the meta device; pass param_init_fn"
                    )
                m.reset_parameters()


def send_from_first(tensors, ranks: Ranks) -> None:
    """The values of the first rank reach all others.

    Raises:
        ValueError: values that are not there.
    """
    for group in (ranks.shard, ranks.copies):
        if group is None or group.size() == 1:
            continue
        for tensor in tensors:
            if tensor.is_meta:
                raise ValueError(
                    "FSDP: sync_module_states=True needs values at all ranks to "
                    "receive into, got a tensor on the meta device; pass param_init_fn"
                )
            given = tensor.detach()
            sent = given if given.is_contiguous() else given.contiguous()
            collectives.broadcast(sent, group=group, group_src=0)
            if sent is not given:
                given.copy_(sent)


def check_tensors(module, ignored_modules, ignored, keeps_originals: bool) -> list:
    """The parameters that a unit flattens.

    Raises:
        ValueError: of different dtypes, of integers, or some of them frozen.
    """
    slots = slots_of([module], ignored_modules, {id(p) for p in ignored})
    found = [slot.parameter for slot in slots]
    for p in found:
        if not (p.is_floating_point() or p.is_complex()):
            raise ValueError("Cannot flatten integer dtype tensors")
        if p.dtype != found[0].dtype:
            raise ValueError(
                "Must flatten tensors with uniform dtype but got "
                f"{found[0].dtype} and {p.dtype}"
            )
        if not keeps_originals and p.requires_grad != found[0].requires_grad:
            raise ValueError(
                "Must flatten tensors with uniform `requires_grad` when "
                "`use_orig_params=False`"
            )
    return slots
