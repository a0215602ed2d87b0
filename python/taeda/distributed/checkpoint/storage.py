"""The interface of storages."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from taeda.futures import Future

from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """An item that has been written; `storage_data` tells its reader where."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Where a checkpoint is written to.

    Every rank has one. The methods are called in the order in which they stand here,
    `prepare_global_plan` and `finish` at the coordinator only.
    """

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """A new checkpoint begins, under this name if it is given."""

    @abstractmethod
    def set_up_storage_writer(
        self, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Tells whether this rank coordinates; keywords `rank`, `use_collectives`."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan of this rank with what the storage adds."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """The plans of all ranks with what the storage adds."""

    @abstractmethod
    def write_data(
        self, plan: SavePlan, planner: SavePlanner
    ) -> Future[list[WriteResult]]:
        """Writes the items, whose values `planner.resolve_data` gives."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Makes the checkpoint valid: all ranks have written."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can this storage write to a checkpoint of this name?"""

    def storage_meta(self) -> StorageMeta | None:
        """What the planner is told of the storage."""
        return None


class StorageReader(ABC):
    """Where a checkpoint is read from; as StorageWriter."""

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """A new load begins, from this name if it is given."""

    @abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The description of the checkpoint."""

    @abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Tells what `read_metadata` returned, and whether this rank coordinates."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan of this rank with what the storage adds."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all ranks with what the storage adds."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Reads the items into where the planner says."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can this storage read a checkpoint of this name?"""
