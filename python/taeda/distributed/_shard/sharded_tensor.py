"""A tensor in shards along its first dimension."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import taeda
from taeda.distributed import _collectives as collectives
from taeda.distributed._join import _get_default_group

from .metadata import ShardMetadata

__all__ = [
    "Shard",
    "ShardMetadata",
    "ShardedTensor",
    "ShardedTensorMetadata",
    "TensorProperties",
]


@dataclass
class TensorProperties:
    """Of a sharded tensor as a whole."""

    dtype: Any = None
    layout: Any = None
    requires_grad: bool = False


@dataclass
class ShardedTensorMetadata:
    """Of all shards, and the whole's shape."""

    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: Any = ()
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)


@dataclass
class Shard:
    """A tensor and where it lies in the whole."""

    tensor: Any
    metadata: ShardMetadata


class ShardedTensor:
    """Shards of one tensor, those of this rank with their values.

    Made by `of_rows`; ranks whose share of the rows is empty hold no shard.
    """

    def __init__(self, local_shards: list[Shard], metadata, process_group) -> None:
        self._shards, self._metadata = local_shards, metadata
        self._process_group = process_group

    @classmethod
    def of_rows(cls, whole_shape, piece, group=None) -> ShardedTensor:
        """From this rank's rows.

        Args:
            whole_shape: of the whole tensor.
            piece: rows `rank * n` up to `(rank + 1) * n`, n the rounded-up quotient of
                rows by ranks; None, or no rows, where there are fewer.
            group: the ranks; all by default.
        """
        group = group or _get_default_group()
        shape = [int(n) for n in whole_shape]
        step, shards, own = -(-shape[0] // group.size()), [], []
        for rank in range(group.size()):
            start = rank * step
            rows = min(step, shape[0] - start)
            if rows <= 0:
                continue
            placement = f"rank:{rank}/{piece.device}"
            offsets = [start] + [0] * (len(shape) - 1)
            shards.append(ShardMetadata(offsets, [rows, *shape[1:]], placement))
            if rank == group.rank():
                own.append(Shard(piece, shards[-1]))
        properties = TensorProperties(piece.dtype, taeda.strided, piece.requires_grad)
        size = taeda.Size(shape)
        return cls(own, ShardedTensorMetadata(shards, size, properties), group)

    def local_shards(self) -> list[Shard]:
        """This rank's."""
        return self._shards

    def local_tensor(self):
        """The tensor of this rank's only shard.

        Raises:
            NotImplementedError: it has none, or several.
        """
        if len(self._shards) != 1:
            raise NotImplementedError(
                "ShardedTensor.local_tensor: expected one shard, got "
                f"{len(self._shards)}"
            )
        return self._shards[0].tensor

    def metadata(self) -> ShardedTensorMetadata:
        """Where all shards lie."""
        return self._metadata

    def size(self, dim: int | None = None):
        """The whole's shape, or one of its dimensions."""
        size = self._metadata.size
        return size if dim is None else size[dim]

    @property
    def shape(self):
        """The whole's."""
        return self._metadata.size

    @property
    def dtype(self):
        """The elements'."""
        return self._metadata.tensor_properties.dtype

    @property
    def requires_grad(self) -> bool:
        """As the shards were made."""
        return self._metadata.tensor_properties.requires_grad

    def dim(self) -> int:
        """How many dimensions the whole has."""
        return len(self.shape)

    def whole(self):
        """The whole tensor; all ranks of the group must call it."""
        group, shape = self._process_group, list(self.shape)
        step = -(-shape[0] // group.size())
        for place in self._metadata.shards_metadata:
            if place.shard_offsets[0] % max(step, 1):
                raise NotImplementedError("ShardedTensor.whole: uneven shards")
        some = self._shards[0].tensor if self._shards else None
        device = some.device if some is not None else "cpu"
        row = taeda.zeros([step, *shape[1:]], dtype=self.dtype, device=device)
        if some is not None:
            row.narrow(0, 0, some.shape[0]).copy_(some.detach())
        full = row.new_empty([step * group.size(), *shape[1:]])
        collectives.all_gather_into_tensor(full, row, group)
        return full.narrow(0, 0, shape[0])

    def __repr__(self) -> str:
        return f"ShardedTensor({self._metadata})"

    # What `taeda.distributed.checkpoint` asks of values that are spread over ranks.

    def __create_chunk_list__(self) -> list:
        """Where this rank's shards lie."""
        from taeda.distributed.checkpoint.metadata import ChunkStorageMetadata

        return [
            ChunkStorageMetadata(
                taeda.Size(shard.metadata.shard_offsets),
                taeda.Size(shard.metadata.shard_sizes),
            )
            for shard in self._shards
        ]

    def __create_write_items__(self, fqn: str, object: Any) -> list:
        """What saving this rank's shards writes."""
        from taeda.distributed.checkpoint import metadata as kinds
        from taeda.distributed.checkpoint import planner

        items = []
        chunks = self.__create_chunk_list__()
        for chunk, shard in zip(chunks, self._shards, strict=True):
            properties = kinds.TensorProperties.create_from_tensor(shard.tensor)
            data = planner.TensorWriteData(chunk, properties, self.size())
            index = kinds.MetadataIndex(fqn, chunk.offsets)
            kind = planner.WriteItemType.SHARD
            items.append(planner.WriteItem(index, kind, tensor_data=data))
        return items

    def __get_tensor_shard__(self, index):
        """The tensor of this rank's shard at an offset.

        Raises:
            ValueError: there is none.
        """
        for shard in self._shards:
            offsets = shard.metadata.shard_offsets
            if index.offset is None or list(index.offset) == list(offsets):
                return shard.tensor
        raise ValueError(f"{index.fqn} has no shard at {index.offset} on this rank")
