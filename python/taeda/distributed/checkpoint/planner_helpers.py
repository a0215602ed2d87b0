"""Items of plans for the values of a flat state dict.

The boxes of a DTensor are found from its layout (`_boxes.py`). Other values that are
spread over ranks can say themselves which boxes they have here:
`__create_chunk_list__()` returns them as ChunkStorageMetadata,
`__create_write_items__(name, value)` as WriteItem, and `__get_tensor_shard__(index)`
gives the tensor of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda

from . import metadata as kinds
from ._boxes import boxes_of, is_spread
from .planner import (
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from .resharding import overlap, pairs

__all__ = ["create_read_items_for_chunk_list"]


def takes_part(value: Any) -> bool:
    """Has this rank a part of it? A mesh may leave ranks out."""
    return not is_spread(value) or value.device_mesh.get_coordinate() is not None


def _whole(tensor: taeda.Tensor) -> kinds.ChunkStorageMetadata:
    size = tensor.size()
    return kinds.ChunkStorageMetadata(taeda.Size([0] * len(size)), size)


def local_boxes(value: Any) -> list[kinds.ChunkStorageMetadata]:
    """The boxes of a tensor that this rank has.

    Raises:
        ValueError: no tensor.
    """
    if hasattr(value, "__create_chunk_list__"):
        return value.__create_chunk_list__()
    if is_spread(value):
        return [box for box, _ in boxes_of(value)]
    if not isinstance(value, taeda.Tensor):
        raise ValueError(f"expected a tensor, but got {type(value).__name__}")
    return [_whole(value)]


def local_tensor(value: Any, index: kinds.MetadataIndex) -> taeda.Tensor:
    """The tensor of one of this rank's boxes.

    Raises:
        ValueError: there is no box at the index's offset.
    """
    if hasattr(value, "__get_tensor_shard__"):
        return value.__get_tensor_shard__(index)
    if is_spread(value):
        for box, part in boxes_of(value):
            if index.offset is None or tuple(box.offsets) == tuple(index.offset):
                return part
        raise ValueError(f"{index.fqn} has nothing at {index.offset} on this rank")
    if index.offset is not None and any(index.offset):
        raise ValueError(
            f"{index.fqn} is not spread over ranks, it has nothing at {index.offset}"
        )
    return value


def write_items(name: str, value: Any) -> list[WriteItem]:
    """What saving a value at this rank writes, before ranks agree who does."""
    if hasattr(value, "__create_write_items__"):
        return value.__create_write_items__(name, value)
    if not isinstance(value, taeda.Tensor):
        return [WriteItem(kinds.MetadataIndex(name), WriteItemType.BYTE_IO)]
    if is_spread(value):
        kind, boxes = WriteItemType.SHARD, [box for box, _ in boxes_of(value)]
        properties = kinds.TensorProperties.create_from_tensor(value._local_tensor)
    else:
        kind, boxes = WriteItemType.TENSOR, [_whole(value)]
        properties = kinds.TensorProperties.create_from_tensor(value)
    items = []
    for box in boxes:
        data = TensorWriteData(box, properties, value.size())
        index = kinds.MetadataIndex(name, box.offsets)
        items.append(WriteItem(index, kind, tensor_data=data))
    return items


def read_items(name: str, stored: kinds.STORAGE_TYPES, value: Any) -> list[ReadItem]:
    """What loading a value at this rank reads.

    Raises:
        ValueError: a tensor is stored, and `value` is none.
    """
    if isinstance(stored, kinds.BytesStorageMetadata):
        index, none = kinds.MetadataIndex(name), taeda.Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    try:
        wanted = local_boxes(value)
    except ValueError as error:
        raise ValueError(
            f"{name} is a tensor in the checkpoint, not in the state dict: {error}"
        ) from error
    return create_read_items_for_chunk_list(name, stored, wanted)


def create_read_items_for_chunk_list(
    fqn: str,
    checkpoint_md: kinds.TensorStorageMetadata,
    local_chunks: Sequence[kinds.ChunkStorageMetadata],
) -> list[ReadItem]:
    """The reads that fill boxes out of the stored ones.

    Args:
        fqn (str): the flat name. checkpoint_md: of the stored tensor.
        local_chunks: the boxes to fill.
    """
    items = []
    for i, j in sorted(pairs(local_chunks, checkpoint_md.chunks)):
        wanted, saved = local_chunks[i], checkpoint_md.chunks[j]
        shared = overlap(saved, wanted)
        if shared is None:
            continue
        inside_saved, inside_wanted, lengths = map(taeda.Size, shared)
        target = kinds.MetadataIndex(fqn, wanted.offsets, i)
        source = kinds.MetadataIndex(fqn, saved.offsets, j)
        items.append(
            ReadItem(
                LoadItemType.TENSOR,
                target,
                inside_wanted,
                source,
                inside_saved,
                lengths,
            )
        )
    return items


def narrow(tensor: taeda.Tensor, offsets, lengths) -> taeda.Tensor:
    """The view of a box."""
    for dim, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        if length != tensor.shape[dim]:
            tensor = tensor.narrow(dim, offset, length)
    return tensor
