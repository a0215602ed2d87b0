"""Checkpoints as folders in PyTorch's format.

`__RANK_N.distcp` hold the items one after another, each as `taeda.save` writes it;
`.metadata` says what there is and where. A save over an older checkpoint takes new
numbers N, so that until `.metadata` is replaced, in one step, the older one is whole.
"""

from __future__ import annotations

import io
import os
import re
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import taeda
from taeda.futures import Future

from . import _metadata_file
from ._extension import ExtensionRegistry, StreamTransformExtension
from ._files import FileSystem, FileSystemBase
from ._writing import Job, balanced, run_jobs, synced
from .metadata import STATE_DICT_TYPE, Metadata, StorageMeta
from .planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
)
from .planner_helpers import narrow
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult
from .utils import FileView

__all__ = [
    "FileSystem",
    "FileSystemBase",
    "FileSystemReader",
    "FileSystemWriter",
    "SerializationFormat",
]

_METADATA = ".metadata"
_VERSION = "1.0.0"
_DATA_FILE = re.compile(r"__(\d+)_(\d+)\.distcp")


@dataclass
class _StorageInfo:
    """Where an item lies; part of the file format."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict:
        return {k: v for k, v in vars(self).items() if v is not None}


@dataclass
class _StoragePrefix:
    """How the names of a rank's files begin, and their first number."""

    prefix: str
    first: int = 0


class SerializationFormat(Enum):
    """What the data files are."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


def _finished(value: Any) -> Future:
    done: Future = Future()
    done.set_result(value)
    return done


def _metadata_name(rank: int | None) -> str:
    return _METADATA if rank is None else f"__{rank}{_METADATA}"


class FileSystemWriter(StorageWriter, BlockingAsyncStager):
    """Writes a folder.

    Args:
        path: of the folder, which is made if it is not there.
        single_file_per_rank (bool): False writes a file for each item.
        sync_files (bool): what is written is on the disk when the save ends. Without, a
            crash of the system may leave a checkpoint that is not whole.
        thread_count (int): threads that write, each into files of its own.
        per_thread_copy_ahead (int): bytes that each thread may have copied from a GPU
            and not written yet; copies from a GPU are waited for one by one, so it
            changes nothing here.
        cache_staged_state_dict (bool): `async_save` copies into the same memory.
        overwrite (bool): False refuses a folder with a checkpoint in it.
        _extensions: change the bytes on their way to the file (`_extension.py`).
        serialization_format: of the data files.

    On every rank:
        writer = FileSystemWriter("step100", thread_count=2)
        taeda.distributed.checkpoint.save(state, storage_writer=writer)
    """

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Sequence[StreamTransformExtension] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        BlockingAsyncStager.__init__(self, cache_staged_state_dict)
        self.fs: FileSystemBase = FileSystem()
        self.overwrite, self.sync_files = overwrite, sync_files
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.single_file_per_rank = single_file_per_rank
        self.thread_count = thread_count
        self.extensions = tuple(_extensions or ())
        self.rank: int | None = None
        self.use_collectives = True
        self.serialization_format = serialization_format
        self._begin(path)

    def _begin(self, path: str | os.PathLike) -> None:
        """Another save."""
        self.path, self.save_id = self.fs.init_path(path), str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self._begin(checkpoint_id or self.path)

    def set_up_storage_writer(
        self, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def _own_rank(self) -> int | None:
        """This rank, if it has a description of its own."""
        return None if self.use_collectives else self.rank

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        name = _metadata_name(None if self.use_collectives else 0)
        if self.fs.exists(self.fs.concat_path(self.path, name)):
            if not self.overwrite:
                raise RuntimeError(
                    f"Checkpoint already exists in {self.path}, and overwrite is False"
                )
            warnings.warn(
                f"{self.path} has a checkpoint, which this one replaces", stacklevel=2
            )
        if self._own_rank() is None:
            return plan
        return replace(plan, storage_data=self._prefixes()(self.rank))

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        prefix = self._prefixes()
        return [
            replace(plan, storage_data=plan.storage_data or prefix(rank))
            for rank, plan in enumerate(plans)
        ]

    def _prefixes(self) -> Callable[[int], _StoragePrefix]:
        """Rank -> names that nothing in the folder has, valid or of a killed save."""
        first: dict[int, int] = {}
        for rank, number in self._data_files():
            first[int(rank)] = max(first.get(int(rank), 0), int(number) + 1)
        return lambda rank: _StoragePrefix(f"__{rank}_", first.get(rank, 0))

    def _data_files(self) -> list[tuple[str, str]]:
        """(rank, number) of the data files in the folder, where it can be listed."""
        if not hasattr(self.fs, "ls") or not self.fs.exists(self.path):
            return []
        names = (os.path.basename(str(p)) for p in self.fs.ls(self.path))
        return [m.groups() for m in map(_DATA_FILE.fullmatch, names) if m]

    def write_data(
        self, plan: SavePlan, planner: SavePlanner
    ) -> Future[list[WriteResult]]:
        names: _StoragePrefix = plan.storage_data
        if self.single_file_per_rank:
            parts = balanced(plan.items, self.thread_count)
        else:
            parts = [[item] for item in plan.items]
        jobs = [
            Job(f"{names.prefix}{names.first + n}.distcp", part)
            for n, part in enumerate(parts)
        ]
        return _finished(run_jobs(self, jobs, planner))

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        metadata.version = _VERSION
        metadata.storage_meta = self.storage_meta()
        metadata.storage_data = {
            result.index: result.storage_data for part in results for result in part
        }
        name = _metadata_name(self._own_rank())
        new = self.fs.concat_path(self.path, f"{name}.tmp")
        if self.sync_files:
            self._sync_folder()
        with self.fs.create_stream(new, "wb") as stream:
            stream.write(_metadata_file.encode(metadata))
            if self.sync_files:
                synced(stream)
        self.fs.rename(new, self.fs.concat_path(self.path, name))
        if self.sync_files:
            self._sync_folder()
        self._forget_others(metadata)

    def _sync_folder(self) -> None:
        """Makes the names of files lasting, before they are relied on."""
        if hasattr(self.fs, "sync"):
            self.fs.sync(self.path)

    def _forget_others(self, metadata: Metadata) -> None:
        """Deletes data files that the new checkpoint does not use."""
        used = {place.relative_path for place in metadata.storage_data.values()}
        for rank, number in self._data_files():
            name = f"__{rank}_{number}.distcp"
            mine = self._own_rank() is None or int(rank) == self.rank
            if mine and name not in used:
                self.fs.rm_file(self.fs.concat_path(self.path, name))

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        """A copy of the state on the CPU."""
        return super().stage(state_dict)


class FileSystemReader(StorageReader):
    """Reads a folder that FileSystemWriter, or PyTorch's, has written.

    Args:
        path: of the folder.
        _extension_registry: of what undoes the changes of extensions.

    Of a checkpoint in step100:
        FileSystemReader("step100").read_metadata().state_dict_metadata
    """

    def __init__(
        self,
        path: str | os.PathLike,
        _extension_registry: ExtensionRegistry | None = None,
    ) -> None:
        self.fs: FileSystemBase = FileSystem()
        self.registry = _extension_registry or ExtensionRegistry()
        self.rank: int | None = None
        self.use_collectives = True
        self.path = self.fs.init_path(path)
        self._begin()

    def _begin(self) -> None:
        """Another load."""
        self.load_id, self.storage_data = str(uuid.uuid4()), {}

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self.path = self.fs.init_path(checkpoint_id or self.path)
        self._begin()

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The description; with the keyword `rank`, that rank's own.

        Raises:
            FileNotFoundError: there is no checkpoint.
            UnpicklingError: it is damaged, or asks for more than data.
        """
        path = self.fs.concat_path(self.path, _metadata_name(kwargs.get("rank")))
        with self.fs.create_stream(path, "rb") as stream:
            found = _metadata_file.decode(stream.read())
        # Files of PyTorch 2.2 and before do not say which save they are of.
        found.storage_meta = getattr(found, "storage_meta", None) or StorageMeta()
        found.storage_meta.load_id = self.load_id
        return found

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        if metadata.storage_data is None:
            raise AssertionError("the metadata do not say where the items are")
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            name = self.storage_data[item.storage_index].relative_path
            files.setdefault(name, []).append(item)
        for name, items in files.items():
            # In the order of the file; boxes of one item are read one after another.
            items.sort(key=lambda i: self.storage_data[i.storage_index].offset)
            path = self.fs.concat_path(self.path, name)
            with self.fs.create_stream(path, "rb") as stream:
                self._read_file(stream, items, planner)
        return _finished(None)

    def _read_file(self, stream, items: list[ReadItem], planner: LoadPlanner) -> None:
        last, tensor = None, None
        for item in items:
            place = self.storage_data[item.storage_index]
            if item.type == LoadItemType.BYTE_IO:
                data = self._view(stream, place).read()
                planner.load_bytes(item, io.BytesIO(data))
                continue
            if place is not last:
                view = self._view(stream, place)
                last, tensor = place, taeda.load(view, map_location="cpu")
            fill(item, narrow(tensor, item.storage_offsets, item.lengths), planner)

    def _view(self, stream, place: _StorageInfo):
        """The bytes of an item as a file, without what extensions did to them."""
        view = FileView(stream, place.offset, place.length)
        names = place.transform_descriptors
        if not names:
            return view
        for extension in self.registry.from_descriptor_list(names):
            view = extension.transform_from(view)
        return io.BytesIO(view.read())

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


def fill(item: ReadItem, found: taeda.Tensor, planner: LoadPlanner) -> None:
    """Copies what was read to where it belongs."""
    target = planner.resolve_tensor(item).detach()
    if target.shape != found.shape:
        raise AssertionError(
            f"{item.storage_index} has {found.shape}, and {target.shape} is to be read"
        )
    target.copy_(found)
    planner.commit_tensor(item, target)
