"""Views: which axis of the result each axis of the tensor becomes, told by strides.

The view is made of a tensor on meta without gaps, in which every axis longer than one
has a stride of its own. An axis of the result that has stride and size of an axis of
the tensor is that axis; one that spans it has it inside; one that it spans is a part of
it. So no view needs a rule.
"""

from __future__ import annotations

import math

import taeda
from taeda import _C

from ._layout import contiguous_stride
from ._patterns import REPLICATE, Operands, Strategy, result_count
from .placement_types import Shard, _StridedShard

_op_call = _C._op_call


class ViewPattern:
    """A view of one tensor, `self`.

    Args:
        func: the overload.
    """

    reads_numbers = False

    def __init__(self, func) -> None:
        self.func, self.record = func, func.record

    def strategies(self, call: Operands, mesh_dim: int, count: int) -> list[Strategy]:
        """Those that keep the placement of the tensor, and the replica's."""
        results = result_count(call.results)
        placement = call.placed(mesh_dim)[0]
        found = []
        if placement.is_partial():
            found.append(Strategy([placement], [placement] * results))
        elif placement.is_shard():
            after = self._after(call, placement, mesh_dim, count)
            if after is not None:
                found.append(Strategy([placement], [after] * results))
        return [*found, Strategy([REPLICATE], [REPLICATE] * results)]

    def _after(self, call: Operands, placement, mesh_dim: int, count: int):
        """How the results are cut; None if no cut of theirs is the same."""
        shape = call.shapes[0]
        views = _made(self.func, shape, call.values)
        if views is None:
            return None
        # What earlier dimensions of the mesh cut has less to give to this one.
        spec = call.specs[0]
        cuts = [1] * len(shape)
        for at in range(mesh_dim):
            before, ranks = spec.placements[at], spec.mesh.size(at)
            if before.is_shard() and self._after(call, before, at, ranks) is not None:
                cuts[spec.placements[at].dim] *= spec.mesh.size(at)
        found = {_cut_of(shape, placement, view, cuts, count) for view in views}
        return found.pop() if len(found) == 1 else None


def _made(func, shape, values: dict) -> list | None:
    base = taeda.empty_strided(tuple(shape), contiguous_stride(shape), device="meta")
    try:
        made = _op_call(func._entry, (base, *list(values.values())[1:]))
    except (RuntimeError, IndexError):
        return None
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _cut_of(shape, placement, view, cuts: list[int], count: int):
    """The placement of the view, or None.

    Args:
        shape: of the tensor.
        placement: how `count` ranks cut one of its axes.
        view: what was made of it.
        cuts: into how many parts each axis was cut before.
        count: ranks.
    """
    dim, strides = placement.dim, contiguous_stride(shape)
    size, stride = shape[dim], strides[dim]
    if size == 1:
        # Strides do not tell where such an axis went, unless all axes stayed.
        return placement if list(view.shape) == list(shape) else None
    end = size * stride
    count *= cuts[dim]
    ends = {n * step for n, step in zip(shape, strides, strict=True)}
    for at, (n, step) in enumerate(zip(view.shape, view.stride(), strict=True)):
        if step == 0 or n == 1:
            continue
        if step == stride and n == size:
            return placement._on(at)
        if type(placement) is not Shard:
            continue
        if step <= stride and n * step >= end and size % count == 0:
            # Several axes became one; the outermost of them is cut as it was.
            if n * step == end:
                return Shard(at)
            if n * step in ends:
                outer = [i for i in range(dim) if strides[i] * shape[i] <= n * step]
                pieces = n * step // end
                before = math.prod(cuts[i] for i in outer)
                even = pieces % before == 0
                made = _StridedShard(at, split_factor=pieces // before)
                return made if even else None
        if step > stride and n * step == end:
            return Shard(at) if n % count == 0 else None
    return None
