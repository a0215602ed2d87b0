"""Whole tensors to parts on ranks, and back."""

from __future__ import annotations

from typing import Any

import taeda
import taeda.distributed as dist

from ._boxes import boxes_of, is_spread
from .planner_helpers import narrow, takes_part
from .staging import spread_like
from .utils import default_device, map_tensors

__all__ = ["gathered", "scattered"]


def gathered(state: dict, whole: bool, to_cpu: bool) -> dict:
    """A state with whole tensors, or with tensors on the CPU.

    With both, only the first rank gets it, the others an empty one. All ranks call
    this with the same names.
    """

    def take(tensor: Any) -> Any:
        if whole and is_spread(tensor):
            tensor = tensor.full_tensor()
        return tensor.cpu() if to_cpu else tensor

    found = map_tensors(state, take)
    elsewhere = whole and to_cpu and dist.is_initialized() and dist.get_rank() != 0
    return {} if elsewhere else found


def scattered(given: dict, own: dict, from_first: bool, strict: bool) -> dict:
    """Values in the layout that this process has them in.

    Args:
        given (dict): key -> whole tensor or other value; with `from_first` only the
            first rank's counts.
        own (dict): key -> this process's value, whose layout is taken. It is kept for
            keys that are not given.
        strict (bool): with `from_first`, keys that are not given are left out.
    """
    if from_first:
        table = [_table(given) if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(table, src=0)
        names = table[0]
        found = {key: _received(key, names[key], given, own) for key in names}
        # Only the first rank can be told of names that this process does not have.
        found = {k: v for k, v in found.items() if k in own or dist.get_rank() == 0}
    else:
        names = given
        found = {key: placed(value, own.get(key)) for key, value in given.items()}
    only_given = from_first and strict
    kept = {k: v for k, v in own.items() if k in names or not only_given}
    return {**kept, **found}


class _Tensor:
    """What a rank must know of a tensor to receive it."""

    def __init__(self, tensor: taeda.Tensor) -> None:
        self.size, self.dtype = tuple(tensor.shape), tensor.dtype


def _table(given: dict) -> dict:
    """Values as they are sent at once; large tensors by their size only."""
    return {
        key: _Tensor(value)
        if isinstance(value, taeda.Tensor) and value.dim()
        else value
        for key, value in given.items()
    }


def _received(key: Any, entry: Any, given: dict, own: dict) -> Any:
    """A value of the first rank, one tensor at a time."""
    if not isinstance(entry, _Tensor):
        return placed(entry, own.get(key))
    device = default_device()
    if dist.get_rank() == 0:
        whole = given[key].detach().to(device).contiguous()
    else:
        whole = taeda.empty(entry.size, dtype=entry.dtype, device=device)
    dist.broadcast(whole, src=0)
    return placed(whole, own.get(key))


def placed(whole: Any, like: Any) -> Any:
    """A whole value in the layout of another: each rank cuts out its part.

    The result shares no memory with `whole`: two optimizers that have loaded one state
    would else both change it.
    """
    if not isinstance(whole, taeda.Tensor) or is_spread(whole):
        return whole
    whole = whole.detach()
    if not isinstance(like, taeda.Tensor) or not whole.dim():
        return whole.clone()
    device = like.device if like.device.type != "meta" else default_device()
    if not is_spread(like):
        return whole.to(device, copy=True)
    if any(p.is_partial() for p in like.placements):
        raise NotImplementedError(
            f"a whole tensor cannot be loaded into one with placements "
            f"{like.placements}, of which parts are yet to be summed"
        )
    if not takes_part(like):
        return like
    if tuple(whole.shape) != tuple(like.shape):
        return whole  # `load_state_dict` names the sizes that differ
    local = taeda.empty_like(like._local_tensor, device=device)
    made = spread_like(like, local)
    for box, part in boxes_of(made):
        part.copy_(narrow(whole, box.offsets, box.sizes))
    return made
