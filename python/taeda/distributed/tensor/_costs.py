"""What redistribution costs: microseconds of collectives on one mesh.

Start of a collective 6.6, 0.6 for each further rank, and bytes at 87.7 GB/s, the same
figures for every mesh: only their order decides, and it has to be the same at all
ranks. An exchange counts one more than gathering, so that of two ways that move as much
the one with less memory traffic is taken.
"""

from __future__ import annotations

import math

from ._redistribute import plan
from .placement_types import Partial, Replicate

_START, _HOP, _BYTES_PER_MICROSECOND = 6.6, 0.6, 87.7e3
_EXCHANGE = 1.0


def redistribute_cost(spec, placements) -> float:
    """Microseconds; infinite where there is no way."""
    if spec.placements == placements:
        return 0.0
    try:
        steps = plan(spec.placements, placements)
    except RuntimeError:
        return math.inf
    meta, cost = spec.tensor_meta, 0.0
    size = math.prod(meta.shape) * meta.dtype.itemsize / max(spec.num_shards, 1)
    for dim, source, target in steps:
        ranks = spec.mesh.size(dim)
        step, size = _step(source, target, ranks, size)
        cost += step
    return cost


def scatter_cost(tensor, ranks: int) -> float:
    """Microseconds of reducing a tensor of which each rank then has a part."""
    return _time(ranks - 1, ranks, tensor.numel() * tensor.dtype.itemsize)


def _step(source, target, ranks: int, size: float) -> tuple[float, float]:
    """The cost of a step, and the bytes that each rank has afterwards."""
    if isinstance(source, Replicate):
        return 0.0, size / ranks if target.is_shard() else size
    if isinstance(target, Partial):
        return math.inf, size
    if isinstance(source, Partial):
        if target.is_shard():
            return _time(ranks - 1, ranks, size), size / ranks
        return _time(2 * (ranks - 1), ranks, size), size
    size *= 1 if target.is_shard() else ranks
    extra = _EXCHANGE if target.is_shard() else 0.0
    return _time(ranks - 1, ranks, size) + extra, size


def _time(hops: int, ranks: int, size: float) -> float:
    return _START + hops * _HOP + size * hops / ranks / _BYTES_PER_MICROSECOND
