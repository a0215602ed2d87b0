"""From one placement to another: which collectives, and their gradient."""

from __future__ import annotations

import taeda
from taeda.autograd import Function

from . import _transfers as transfers
from ._dtensor_spec import DTensorSpec
from .placement_types import Partial, Replicate, Shard, _StridedShard

_SHARDS = (Shard, _StridedShard)


# Note [Order of redistribution]
# Cuts along one dimension of a tensor nest in the order of the mesh's dimensions: a
# later one cuts what an earlier one left. So a cut may be added only inside of all
# others, once those outside of it are as they shall be, and taken away only if none is
# inside. Steps are taken until all placements are the wanted ones: first what needs no
# communication (a replica is cut), then what makes the rest smaller (a reduction that
# leaves a part), then an exchange, then reductions and gathering.
def plan(current, target) -> list[tuple[int, object, object]]:
    """Steps (dimension of the mesh, from, to) that lead from placements to others.

    Raises:
        RuntimeError: a part cannot become a partial value, or one kind of it another.
    """
    now, steps = list(current), []
    while now != list(target):
        step = _next_step(now, target)
        steps.append((step[0], now[step[0]], step[1]))
        now[step[0]] = step[1]
    return steps


def _next_step(now: list, target) -> tuple[int, object]:
    differing = [i for i in range(len(now)) if now[i] != target[i]]
    for wanted in (_cut, _scatter, _exchange):
        for i in differing:
            if wanted(now[i], target[i]) and _may_cut(now, target, i):
                if not isinstance(now[i], _SHARDS) or _is_inside(now, i):
                    return i, target[i]
    for i in reversed(differing):
        if isinstance(now[i], Replicate) and isinstance(target[i], Partial):
            return i, target[i]
        if not isinstance(now[i], Replicate) and _is_inside(now, i):
            return i, Replicate()
    # A cut that stays lies inside of one that goes: it is made again afterwards.
    for i in reversed(range(len(now))):
        if isinstance(now[i], _SHARDS) and _is_inside(now, i) and now[i] == target[i]:
            if any(_shares(now[i], p) for k in differing for p in (now[k], target[k])):
                return i, Replicate()
    raise RuntimeError(
        f"redistribute: no way from {tuple(map(str, now))} to {tuple(map(str, target))}"
    )


def _cut(a, b) -> bool:
    return isinstance(a, Replicate) and isinstance(b, _SHARDS)


def _scatter(a, b) -> bool:
    return isinstance(a, Partial) and isinstance(b, _SHARDS)


def _exchange(a, b) -> bool:
    return type(a) is Shard and isinstance(b, Shard) and a.dim != b.dim


def _shares(a, b) -> bool:
    return isinstance(a, _SHARDS) and isinstance(b, _SHARDS) and a.dim == b.dim


def _is_inside(now: list, i: int) -> bool:
    """Whether no later dimension of the mesh cuts what this one cut."""
    return not any(_shares(now[i], other) for other in now[i + 1 :])


def _may_cut(now: list, target, i: int) -> bool:
    """Whether `target[i]` may be applied now."""
    wanted = target[i]
    if any(_shares(wanted, other) for other in now[i + 1 :]):
        return False
    return all(
        now[k] == target[k]
        for k in range(i)
        if _shares(wanted, now[k]) or _shares(wanted, target[k])
    )


def redistribute_local_tensor(local, current_spec: DTensorSpec, target_spec):
    """This rank's part under the target's placements.

    Args:
        local: its part under the current ones.
        current_spec: mesh, placements and shape.
        target_spec: the same with other placements.

    Raises:
        NotImplementedError: the meshes differ.
    """
    mesh = current_spec.mesh
    if mesh != target_spec.mesh:
        raise NotImplementedError(
            "redistribute: from one mesh to another is not supported"
        )
    coordinate = mesh.get_coordinate()
    if coordinate is None or current_spec.placements == target_spec.placements:
        return local
    return moved(local, current_spec, target_spec.placements)


def moved(local, spec: DTensorSpec, placements):
    """This rank's part under other placements of the same mesh."""
    mesh, coordinate = spec.mesh, spec.mesh.get_coordinate()
    if coordinate is None:
        return local
    now = list(spec.placements)
    for dim, source, target in plan(now, placements):
        count, index = mesh.size(dim), coordinate[dim]
        if isinstance(source, _SHARDS):
            size = _size_before(spec.shape, mesh, now, coordinate, dim, source.dim)
        if isinstance(source, Replicate):
            if isinstance(target, Partial):
                local = target._part_of(local, count, index)
            else:
                local = transfers.part(local, target, count, index).clone(
                    memory_format=taeda.contiguous_format
                )
        elif isinstance(source, Partial):
            if isinstance(target, _SHARDS):
                local = transfers.reduce_to_part(local, source, target, mesh, dim)
            else:
                local = transfers.reduce(local, source, mesh, dim)
        elif isinstance(target, Replicate):
            local = transfers.gather(local, source, size, mesh, dim)
        else:
            local = transfers.exchange(local, source, target, size, mesh, dim)
        now[dim] = target
    return local


def _size_before(shape, mesh, now, coordinate, mesh_dim: int, dim: int) -> int:
    """How long a dimension is before that dimension of the mesh cuts it."""
    size = shape[dim]
    for at in range(mesh_dim):
        if isinstance(now[at], _SHARDS) and now[at].dim == dim:
            ranges = now[at]._ranges(size, mesh.size(at), coordinate[at])
            size = sum(end - start for start, end in ranges)
    return size


class Redistribute(Function):
    """To other placements; the gradient goes back to those of the input."""

    @staticmethod
    def forward(ctx, tensor, placements, forward_dtype, backward_dtype):
        from ._api import DTensor

        spec, local = tensor._spec, tensor._local_tensor
        ctx.spec, ctx.dtype, ctx.backward_dtype = spec, local.dtype, backward_dtype
        if forward_dtype is not None and forward_dtype != local.dtype:
            local = local.to(forward_dtype)
        if spec.placements == placements:
            result = local.view_as(local)
        else:
            result = moved(local, spec, placements)
        meta = spec.tensor_meta._replace(dtype=result.dtype)
        return DTensor._make(result, DTensorSpec(spec.mesh, placements, meta))

    @staticmethod
    def backward(ctx, grad):
        from ._api import DTensor

        if grad is None:
            return None, None, None, None
        now = grad._spec.placements
        placements = tuple(
            _placement_of_gradient(was, is_now)
            for was, is_now in zip(ctx.spec.placements, now, strict=True)
        )
        local = grad._local_tensor
        if ctx.backward_dtype is not None and ctx.backward_dtype != local.dtype:
            local = local.to(ctx.backward_dtype)
        if placements == now:
            result = local.view_as(local)
        else:
            result = moved(local, grad._spec, placements)
        if result.dtype != ctx.dtype:
            result = result.to(ctx.dtype)
        meta = ctx.spec.tensor_meta._replace(dtype=result.dtype)
        made = DTensor._make(result, DTensorSpec(ctx.spec.mesh, placements, meta))
        return made, None, None, None


def _placement_of_gradient(was, is_now):
    """Where the gradient goes: of each rank's summand it is the whole gradient."""
    if isinstance(was, Partial) and was != is_now:
        return Replicate()
    return was
