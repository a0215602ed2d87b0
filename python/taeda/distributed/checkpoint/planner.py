"""Plans: who writes or reads which boxes; and the interface of what makes them."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import taeda

from .metadata import (
    STATE_DICT_TYPE,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]


class WriteItemType(Enum):
    """What is written: a tensor, a part of one, or the bytes of an object."""

    TENSOR = 1
    SHARD = 2
    BYTE_IO = 3


class LoadItemType(Enum):
    """What is read: a box of a tensor, or the bytes of an object."""

    TENSOR = 1
    BYTE_IO = 2


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes an object takes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A box, and the tensor that it is of."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: taeda.Size


@dataclass(frozen=True)
class WriteItem:
    """One thing to write: an object's bytes or a box of a tensor."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Bytes of the whole tensor; None for an object."""
        data = self.tensor_data
        if data is None:
            return None
        return prod(data.size) * data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing to read: the box that a stored box and a wanted one share.

    `storage_offsets` and `dest_offsets` say where it begins in each, `lengths` how
    long it is.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: taeda.Size
    storage_index: MetadataIndex
    storage_offsets: taeda.Size
    lengths: taeda.Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes.

    `storage_data` is the storage's and `planner_data` the planner's. A plan that is
    not `usable` stands for the one that was sent before.
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads; fields as of SavePlan."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Decides what each rank writes.

    The methods are called in the order in which they stand here; `create_global_plan`
    at the coordinator only, all others at every rank. Derive from DefaultSavePlanner
    and change one of them, e.g. to rename entries or to write other dtypes.
    """

    @abstractmethod
    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """A save of `state_dict` begins."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank has."""

    @abstractmethod
    def create_global_plan(
        self, all_plans: list[SavePlan]
    ) -> tuple[list[SavePlan], Metadata]:
        """What each rank writes, and the description of the checkpoint."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The final plan of this rank, out of what the coordinator decided."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> taeda.Tensor | io.BytesIO:
        """What is written for an item; called from the writer's threads."""


class LoadPlanner(ABC):
    """Decides what each rank reads, and where it goes.

    `create_global_plan` is called at the coordinator only, all others at every rank;
    `load_bytes` for each object, `resolve_tensor` and then `commit_tensor` for each
    box of a tensor.
    """

    @abstractmethod
    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """A load into `state_dict` begins."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank needs."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each rank reads."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The final plan of this rank."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Puts an object in its place."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where a storage may write an object's bytes itself."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> taeda.Tensor:
        """The tensor of `read_item.lengths` that is to be filled."""

    @abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: taeda.Tensor) -> None:
        """The tensor of `resolve_tensor` has been filled."""
