"""Moves local parts between the ranks of one dimension of a mesh.

Groups may hold parts of different length: what travels is padded to the longest where
a collective wants equal parts. Nothing here is recorded by autograd.
"""

from __future__ import annotations

import math

import taeda

from .. import _collectives as collectives
from .._observers import observed
from .._types import ReduceOp
from .placement_types import Partial, _StridedShard

Tensor = taeda.Tensor


def _resized(local: Tensor, dim: int, size: int) -> Tensor:
    """With zeros at the end of a dimension, up to the size."""
    lacking = size - local.shape[dim]
    if lacking == 0:
        return local
    shape = list(local.shape)
    shape[dim] = lacking
    return taeda.cat([local, local.new_zeros(shape)], dim)


def gather(local: Tensor, placement, size: int, mesh, mesh_dim: int) -> Tensor:
    """All rows of a dimension of which each rank has its part.

    Args:
        local: this rank's.
        placement: `Shard` or `_StridedShard`.
        size: of the dimension as a whole.
        mesh: the ranks.
        mesh_dim: along which they lie.
    """
    dim, group = placement.dim, mesh.get_group(mesh_dim)
    count = mesh.size(mesh_dim)
    ranges = [placement._ranges(size, count, r) for r in range(count)]
    sizes = [sum(end - start for start, end in r) for r in ranges]
    longest = max(sizes)
    rows = _resized(local, dim, longest).contiguous()
    observed("all_gather_into_tensor", mesh, rows)
    # One dimension more in front holds the ranks' tensors side by side.
    out = rows.new_empty((count, *rows.shape))
    collectives.all_gather_into_tensor(out, rows, group)
    even = sizes.count(longest) == count
    if even and not isinstance(placement, _StridedShard):
        return out.flatten(0, 1) if dim == 0 else taeda.cat(out.unbind(0), dim)
    parts = [p.narrow(dim, 0, n) for p, n in zip(out.unbind(0), sizes, strict=True)]
    joined = taeda.cat(parts, dim)
    if not isinstance(placement, _StridedShard):
        return joined
    held = [row for r in ranges for start, end in r for row in range(start, end)]
    order = sorted(range(len(held)), key=held.__getitem__)
    return joined.index_select(dim, taeda.tensor(order, device=joined.device))


def part(whole: Tensor, placement, count: int, index: int) -> Tensor:
    """What the rank `index` of `count` holds of a tensor."""
    ranges = placement._ranges(whole.shape[placement.dim], count, index)
    parts = [whole.narrow(placement.dim, a, b - a) for a, b in ranges]
    if not parts:
        return whole.narrow(placement.dim, 0, 0)
    return parts[0] if len(parts) == 1 else taeda.cat(parts, placement.dim)


def reduce(local: Tensor, placement: Partial, mesh, mesh_dim: int) -> Tensor:
    """The reduction of the ranks' values."""
    value = placement._before(local).clone(memory_format=taeda.contiguous_format)
    observed("all_reduce", mesh, value)
    collectives.all_reduce(value, operation(placement, value), mesh.get_group(mesh_dim))
    return placement._after(value)


def operation(placement: Partial, value: Tensor) -> ReduceOp:
    """How values of that placement are reduced.

    Raises:
        ValueError: `reduce_op` is none that collectives know.
    """
    found = getattr(ReduceOp, placement.reduce_op.upper(), None)
    if found is None:
        raise ValueError(f"Partial: unknown reduce_op {placement.reduce_op!r}")
    if value.dtype is taeda.bool:
        # A sum of truths is whether any holds, a product whether all do.
        found = {"sum": ReduceOp.MAX, "product": ReduceOp.MIN}.get(
            placement.reduce_op, found
        )
    return found


def reduce_to_part(local: Tensor, placement: Partial, to, mesh, mesh_dim: int):
    """This rank's part of the reduction of the ranks' values."""
    count, index = mesh.size(mesh_dim), mesh.get_coordinate()[mesh_dim]
    value, dim = placement._before(local), to.dim
    size = value.shape[dim]
    parts = [part(value, to, count, r) for r in range(count)]
    longest = max(p.shape[dim] for p in parts)
    if dim == 0 and longest * count == size and not isinstance(to, _StridedShard):
        whole = value.contiguous()
    else:
        whole = taeda.cat([_resized(p, dim, longest) for p in parts], 0).contiguous()
        if value.dim() and dim != 0:
            whole = whole.contiguous()
    shape = list(value.shape)
    shape[dim] = longest
    out = whole.new_empty(shape)
    observed("reduce_scatter_tensor", mesh, whole)
    collectives.reduce_scatter_tensor(
        out, whole, operation(placement, whole), mesh.get_group(mesh_dim)
    )
    mine = parts[index].shape[dim]
    return placement._after(out.narrow(dim, 0, mine) if mine < longest else out)


def exchange(local: Tensor, source, target, size: int, mesh, mesh_dim: int) -> Tensor:
    """From parts along one dimension to parts along another.

    Args:
        local: this rank's part.
        source: its placement, `Shard`.
        target: the new one, along another dimension.
        size: of the source's dimension as a whole.
        mesh: the ranks.
        mesh_dim: along which they lie.
    """
    count, index = mesh.size(mesh_dim), mesh.get_coordinate()[mesh_dim]
    sent = [part(local, target, count, r).contiguous() for r in range(count)]
    shape = list(sent[index].shape)
    shapes = []
    for rank in range(count):
        start, end = source._ranges(size, count, rank)[0]
        shape[source.dim] = end - start
        shapes.append(tuple(shape))
    lengths = [math.prod(s) for s in shapes]
    flat = taeda.cat([s.reshape(-1) for s in sent])
    out = flat.new_empty(sum(lengths))
    observed("all_to_all_single", mesh, flat)
    collectives.all_to_all_single(
        out, flat, lengths, [s.numel() for s in sent], mesh.get_group(mesh_dim)
    )
    found = out.split(lengths)
    return taeda.cat(
        [f.reshape(s) for f, s in zip(found, shapes, strict=True)], source.dim
    )
