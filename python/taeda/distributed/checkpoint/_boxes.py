"""Which boxes of a DTensor this rank has."""

from __future__ import annotations

from itertools import product
from typing import Any

import taeda

from .metadata import ChunkStorageMetadata

__all__ = ["boxes_of", "is_spread"]


def is_spread(value: Any) -> bool:
    """Is this a tensor of which each rank has a part?"""
    return isinstance(value, taeda.Tensor) and hasattr(value, "device_mesh")


def boxes_of(tensor: Any) -> list[tuple[ChunkStorageMetadata, taeda.Tensor]]:
    """This rank's boxes, each with the view of the local tensor that holds it.

    With strided shards a rank has several; without any rows there is one empty box, at
    the end of the dimension.

    Raises:
        NotImplementedError: the parts are yet to be summed.
    """
    if any(p.is_partial() for p in tensor.placements):
        raise NotImplementedError(
            f"a DTensor with placements {tensor.placements} in a checkpoint: its parts "
            "are yet to be summed; redistribute it first"
        )
    local = tensor._local_tensor.detach()
    found = []
    for parts in product(*_ranges(tensor)):
        offsets = taeda.Size([start for start, _, _ in parts])
        sizes = taeda.Size([length for _, length, _ in parts])
        view = local
        for dim, (_, length, at) in enumerate(parts):
            view = view.narrow(dim, at, length)
        found.append((ChunkStorageMetadata(offsets, sizes), view))
    return found


def _ranges(tensor: Any) -> list[list[tuple[int, int, int]]]:
    """By dimension: (start in the whole, length, start in the local tensor)."""
    from taeda.distributed.tensor._layout import _within

    mesh = tensor.device_mesh
    coordinate = mesh.get_coordinate()
    rows = [[(0, length)] for length in tensor.shape]
    for at, placement in enumerate(tensor.placements):
        if not hasattr(placement, "dim"):
            continue  # whole along this dimension of the mesh
        held = rows[placement.dim]
        length = sum(end - start for start, end in held)
        mine = placement._ranges(length, mesh.size(at), coordinate[at])
        rows[placement.dim] = _within(held, mine)
    found = []
    for held, length in zip(rows, tensor.shape, strict=True):
        at, parts = 0, []
        for start, end in held:
            parts.append((start, end - start, at))
            at += end - start
        found.append(parts or [(length, 0, 0)])
    return found
