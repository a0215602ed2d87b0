"""Checkpoints as safetensors files, in the layout of Hugging Face's hub.

`model-00001-of-00002.safetensors` and so on, and `model.safetensors.index.json`, which
says in which file each tensor is. When ranks write their own parts the files are
`shard-RANK-model-...`, with the offsets of the parts in their headers; consolidation
puts them together.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import taeda
from taeda._io.atomic import AtomicFile
from taeda._io.safetensors import DTYPES, safe_open, save_file
from taeda.futures import Future

from . import metadata as kinds
from ._writing import Job, run_jobs
from .filesystem import FileSystemReader, FileSystemWriter, SerializationFormat, fill
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner
from .resharding import faults
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

INDEX = "model.safetensors.index.json"
_SHARDED = "sharded"
_SUFFIX = ".safetensors"


def _file_name(number: int, count: int, rank: int | None = None) -> str:
    prefix = "" if rank is None else f"shard-{rank:05d}-"
    return f"{prefix}model-{number:05d}-of-{count:05d}{_SUFFIX}"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors to safetensors files.

    Args:
        path: the folder.
        fqn_to_index_mapping (dict): name -> number of its file, from 1; one file for
            all by default.
        thread_count (int): threads that write.
        save_distributed (bool): every rank writes its parts to files of its own.
        enable_consolidation (bool): the parts, in the folder "sharded" of `path`, are
            put together into files of whole tensors in `path`.
        thread_count_consolidation (int): threads for that, a file for each.

    Raises:
        ValueError: an entry is no tensor.

    On every rank:
        writer = HuggingFaceStorageWriter("model", {"weight": 1, "bias": 2})
        dcp.save(state, storage_writer=writer)
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        safetensors = SerializationFormat.SAFETENSORS
        super().__init__(
            path, thread_count=thread_count, serialization_format=safetensors
        )
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self._into_subfolder()

    def _into_subfolder(self) -> None:
        """Parts go beside the files that they are put together into."""
        whole = str(self.path) if self.enable_consolidation else None
        self.consolidated_output_path: str | None = whole
        if whole is not None:
            self.path = self.fs.concat_path(whole, _SHARDED)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        super().reset(checkpoint_id)
        if checkpoint_id:
            self._into_subfolder()

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [
            replace(
                plan,
                storage_data={"shard_index": rank if self.save_distributed else None},
            )
            for rank, plan in enumerate(plans, 1)
        ]

    def write_data(
        self, plan: SavePlan, planner: SavePlanner
    ) -> Future[list[WriteResult]]:
        rank = plan.storage_data["shard_index"]
        where = self.fqn_to_index_mapping
        count = max(where.values()) if where else 1
        parts: dict[int, list] = {}
        for item in plan.items:
            number = where[item.index.fqn] if where else 1
            parts.setdefault(number, []).append(item)
        jobs = [Job(_file_name(n, count, rank), items) for n, items in parts.items()]
        done: Future = Future()
        done.set_result(run_jobs(self, jobs, planner))
        return done

    def finish(
        self, metadata: kinds.Metadata, results: list[list[WriteResult]]
    ) -> None:
        if self.save_distributed:
            if self.enable_consolidation:
                self._consolidate(metadata)
            return
        flat = [result for part in results for result in part]
        places = {r.index.fqn: r.storage_data.relative_path for r in flat}
        self._write_index(self.path, places, sum(r.size_in_bytes for r in flat))

    def _write_index(self, folder, places: dict[str, str], total: int) -> None:
        content = {"metadata": {"total_size": total}, "weight_map": places}
        with AtomicFile(self.fs.concat_path(folder, INDEX)) as file:
            file.write(json.dumps(content, indent=2).encode())

    def _consolidate(self, metadata: kinds.Metadata) -> None:
        """Files of whole tensors out of those of parts, and the index last."""
        names = list(metadata.state_dict_metadata)
        where = self.fqn_to_index_mapping or dict.fromkeys(names, 1)
        count, target = max(where.values()), self.consolidated_output_path
        reader = HuggingFaceStorageReader(self.path)
        parts = _Parts(reader)
        by_file: dict[int, list[str]] = {}
        for name in names:
            by_file.setdefault(where[name], []).append(name)

        def write(number: int) -> int:
            tensors = {name: parts.whole(name) for name in by_file[number]}
            file = os.path.join(target, _file_name(number, count))
            save_file(tensors, file, {"format": "pt"})
            return sum(t.numel() * t.dtype.itemsize for t in tensors.values())

        with ThreadPoolExecutor(max(1, self.thread_count_consolidation)) as pool:
            total = sum(pool.map(write, by_file))
        places = {name: _file_name(where[name], count) for name in names}
        self._write_index(target, places, total)

    @property
    def metadata_path(self) -> str:
        """The name of the index."""
        return INDEX


class _Parts:
    """Whole tensors out of the parts that a folder has."""

    def __init__(self, reader: HuggingFaceStorageReader) -> None:
        self.metadata = reader.read_metadata()

    def whole(self, name: str) -> taeda.Tensor:
        entry = self.metadata.state_dict_metadata[name]
        wrong = faults(entry.size, entry.chunks)
        if wrong:
            raise ValueError(f"tensor {name!r} has {wrong[0]}")
        out = taeda.empty(entry.size, dtype=entry.properties.dtype)
        for box in entry.chunks:
            place = self.metadata.storage_data[kinds.MetadataIndex(name, box.offsets)]
            target = out
            for dim, (offset, size) in enumerate(
                zip(box.offsets, box.sizes, strict=True)
            ):
                target = target.narrow(dim, offset, size)
            with safe_open(place.relative_path) as file:
                target.copy_(file.get_tensor(name))
        return out


@dataclass
class _HFStorageInfo:
    """The file of a tensor, or of a part of one."""

    relative_path: str
    shape: taeda.Size
    dtype: taeda.dtype


class HuggingFaceStorageReader(FileSystemReader):
    """Reads safetensors files in a folder, whole ones or ranks' parts.

    Args:
        path: the folder. thread_count (int): threads that read, a file each.

    On every rank:
        dcp.load(state, storage_reader=HuggingFaceStorageReader("model"))
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self) -> kinds.Metadata:
        """What the headers of the files say.

        Raises:
            SafetensorError: a file does not follow the format.
        """
        stored: dict[str, Any] = {}
        places: dict[kinds.MetadataIndex, _HFStorageInfo] = {}
        for path in sorted(map(str, self.fs.ls(self.path))):
            if path.endswith(_SUFFIX):
                with safe_open(path) as file:
                    self._describe(path, file, stored, places)
        meta = kinds.StorageMeta(load_id=self.load_id)
        return kinds.Metadata(stored, storage_data=places, storage_meta=meta)

    def _describe(self, path: str, file: safe_open, stored: dict, places: dict) -> None:
        text = (file.metadata() or {}).get("DCP_SHARDING_INFO")
        offsets_of = json.loads(text) if text else None
        for name in file.keys():
            part = file.get_slice(name)
            shape = taeda.Size(part.get_shape())
            dtype = getattr(taeda, DTYPES[part.get_dtype()])
            begin = [0] * len(shape)
            if offsets_of is not None:
                begin = offsets_of[name]["saved_offsets"]
            box = kinds.ChunkStorageMetadata(taeda.Size(begin), shape)
            end = [o + n for o, n in zip(begin, shape, strict=True)]
            entry = stored.setdefault(
                name,
                kinds.TensorStorageMetadata(
                    kinds.TensorProperties(dtype=dtype), taeda.Size(end), []
                ),
            )
            longest = map(max, entry.size, end)
            entry.size = taeda.Size(list(longest))
            entry.chunks.append(box)
            index = kinds.MetadataIndex(name, begin)
            places[index] = _HFStorageInfo(path, shape, dtype)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            path = self.storage_data[item.storage_index].relative_path
            files.setdefault(path, []).append(item)

        def read(path: str) -> None:
            with safe_open(path) as file:
                for item in files[path]:
                    fill(item, self._found(file, item), planner)

        with ThreadPoolExecutor(max(1, self.thread_count)) as pool:
            list(pool.map(read, files))
        done: Future = Future()
        done.set_result(None)
        return done

    def _found(self, file: safe_open, item: ReadItem) -> taeda.Tensor:
        """The box of an item."""
        if not item.lengths:
            return file.get_tensor(item.storage_index.fqn)
        ends = zip(item.storage_offsets, item.lengths, strict=True)
        index = tuple(slice(begin, begin + length) for begin, length in ends)
        return file.get_slice(item.storage_index.fqn)[index]
