"""Shapes and offsets of local parts."""

from __future__ import annotations

import math
from itertools import product

import taeda

from .placement_types import Partial, Replicate, Shard, _StridedShard


def local_shape(spec) -> tuple[int, ...]:
    """The shape of this rank's part; a rank outside of the mesh has no elements."""
    return shape_at(spec.shape, spec.mesh, spec.placements, spec.mesh.get_coordinate())


def shape_at(shape, mesh, placements, coordinate) -> tuple[int, ...]:
    """The shape of the part of the rank at a coordinate."""
    if coordinate is None:
        return (0,)
    sizes = list(shape)
    for at, placement in enumerate(placements):
        if isinstance(placement, (Shard, _StridedShard)):
            ranges = placement._ranges(
                sizes[placement.dim], mesh.size(at), coordinate[at]
            )
            sizes[placement.dim] = sum(end - start for start, end in ranges)
    return tuple(sizes)


def compute_local_shape_and_global_offset(
    global_shape, mesh, placements, skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this rank's part, and where its first element lies in the whole.

    Args:
        global_shape: the tensor's sizes.
        mesh: the ranks.
        placements: one for each dimension of the mesh.
        skip_offset: leaves the offset out; it is empty then.

    Returns:
        Shape and offset; both of them `(0,)` and `()` for a rank outside of the mesh. A
        part without rows lies at the end of its dimension.
    """
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return _part_at(global_shape, mesh, placements, coordinate, skip_offset)


def parts_of(spec) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    """Rank -> shape and offset of its part, of all ranks of the mesh."""
    found = {}
    for coordinate in product(*(range(n) for n in spec.mesh.shape)):
        rank = int(spec.mesh.mesh[coordinate])
        found[rank] = _part_at(spec.shape, spec.mesh, spec.placements, coordinate)
    return found


def _part_at(global_shape, mesh, placements, coordinate, skip_offset: bool = False):
    rows: dict[int, list[tuple[int, int]]] = {}
    sizes = list(global_shape)
    for at, placement in enumerate(placements):
        if not isinstance(placement, (Shard, _StridedShard)):
            continue
        dim = placement.dim
        held = rows.get(dim, [(0, global_shape[dim])])
        ranges = placement._ranges(sizes[dim], mesh.size(at), coordinate[at])
        rows[dim] = _within(held, ranges)
        sizes[dim] = sum(end - start for start, end in ranges)
    if skip_offset:
        return tuple(sizes), ()
    offset = [0] * len(sizes)
    for dim, held in rows.items():
        offset[dim] = held[0][0] if held else global_shape[dim]
    return tuple(sizes), tuple(offset)


def _within(held: list[tuple[int, int]], ranges) -> list[tuple[int, int]]:
    """Ranges of the rows that are held, as ranges of the whole."""
    found = []
    for start, end in ranges:
        before = 0
        for low, high in held:
            a, b = max(start, before), min(end, before + high - low)
            if a < b:
                found.append((low + a - before, low + b - before))
            before += high - low
    return found


def compute_global_tensor_info(local, mesh, placements) -> tuple[list, list]:
    """Shape and strides of the whole, if all ranks' parts are like this one.

    Raises:
        AssertionError: a placement along a dimension that the tensor does not have.
    """
    shape, stride = list(local.shape), list(local.stride())
    for at, placement in enumerate(placements):
        if isinstance(placement, (Shard, _StridedShard)):
            dim, count = placement.dim, mesh.size(at)
            if dim < 0:
                raise AssertionError(
                    "Shard placements should have negative dims normalized: "
                    f"{placement}"
                )
            if dim >= len(shape):
                raise AssertionError(
                    f"Sharding dim {dim} greater than tensor ndim {len(shape)} for "
                    f"placement number {at}."
                )
            own = stride[dim]
            shape[dim] *= count
            stride = [
                s * count if i != dim and s >= own else s for i, s in enumerate(stride)
            ]
        elif not isinstance(placement, (Replicate, Partial)):
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride


def contiguous_stride(shape) -> tuple[int, ...]:
    """The strides of a tensor without gaps, rows last."""
    return tuple(
        math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape))
    )


def normalized(placements, ndim: int) -> tuple:
    """Dimensions counted from the left."""
    return tuple(
        p._on(p.dim + ndim) if p.is_shard() and p.dim < 0 else p for p in placements
    )


def meta_of(tensor):
    """Shape, strides and dtype of a tensor as they are."""
    from ._dtensor_spec import TensorMeta

    return TensorMeta(taeda.Size(tensor.shape), tuple(tensor.stride()), tensor.dtype)
