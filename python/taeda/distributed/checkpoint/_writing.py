"""Threads that write data files."""

from __future__ import annotations

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import taeda

from .planner import SavePlanner, WriteItem, WriteItemType
from .storage import WriteResult

__all__ = ["Job", "balanced", "run_jobs", "synced"]


@dataclass
class Job:
    """A file, and what goes into it."""

    name: str
    items: list[WriteItem]


def balanced(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """The items in `count` lists with about the same number of bytes each."""
    if count <= 1:
        return [items]
    parts: list[list[WriteItem]] = [[] for _ in range(count)]
    load = [0] * count
    sized = [(item.tensor_storage_size() or 1, item) for item in items]
    for size, item in sorted(sized, key=lambda pair: -pair[0]):
        lightest = min(range(count), key=load.__getitem__)
        parts[lightest].append(item)
        load[lightest] += size
    return parts


def run_jobs(writer: Any, jobs: list[Job], planner: SavePlanner) -> list[WriteResult]:
    """Writes files with the threads of a FileSystemWriter; raises what one raised."""
    if writer.thread_count <= 1 or len(jobs) <= 1:
        return [r for job in jobs for r in _write_file(writer, job, planner)]
    with ThreadPoolExecutor(writer.thread_count) as pool:
        parts = pool.map(lambda job: _write_file(writer, job, planner), jobs)
        return [result for part in parts for result in part]


def _write_file(writer: Any, job: Job, planner: SavePlanner) -> list[WriteResult]:
    from .filesystem import SerializationFormat

    objects = [i for i in job.items if i.type == WriteItemType.BYTE_IO]
    tensors = [i for i in job.items if i.type != WriteItemType.BYTE_IO]
    path = writer.fs.concat_path(writer.path, job.name)
    safetensors = writer.serialization_format is SerializationFormat.SAFETENSORS
    # Names of safetensors files are fixed: an older one stays until the new is whole.
    new = writer.fs.concat_path(writer.path, f"{job.name}.tmp") if safetensors else path
    with writer.fs.create_stream(new, "wb") as stream:
        if safetensors:
            if objects:
                raise ValueError(
                    f"{objects[0].index.fqn}: safetensors files have tensors only"
                )
            results = _write_safetensors(stream, job.name, tensors, planner)
        else:
            results = [
                _write_item(writer, stream, job.name, item, planner)
                for item in (*objects, *tensors)
            ]
        if writer.sync_files:
            synced(stream)
    if safetensors:
        writer.fs.rename(new, path)
    return results


def _write_item(
    writer: Any, stream, name: str, item: WriteItem, planner: SavePlanner
) -> WriteResult:
    from .filesystem import _StorageInfo

    begin = stream.tell()
    target = stream
    for extension in writer.extensions:
        target = extension.transform_to(_Open(target))
    value = planner.resolve_data(item)
    if item.type == WriteItemType.BYTE_IO:
        target.write(value.getbuffer())
    else:
        taeda.save(_compact(value), target)
    if target is not stream:
        target.close()
    length = stream.tell() - begin
    used = [e.get_descriptor() for e in reversed(writer.extensions)] or None
    place = _StorageInfo(name, begin, length, used)
    return WriteResult(item.index, length, place)


class _Open(io.RawIOBase):
    """A file that stays open when what writes to it is closed."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self.file = file

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        return self.file.write(data)


def _compact(tensor: taeda.Tensor) -> taeda.Tensor:
    """The tensor on the CPU, with no more memory than its elements."""
    tensor = tensor.detach().cpu()
    if tensor.layout is taeda.strided:
        if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.dtype.itemsize:
            return tensor.clone()
    return tensor


def _write_safetensors(
    stream, name: str, items: list[WriteItem], planner: SavePlanner
) -> list[WriteResult]:
    """A file of tensors, with the offsets of boxes in its header."""
    from taeda._io.safetensors import save

    from .filesystem import _StorageInfo

    tensors, offsets, results = {}, {}, []
    for item in items:
        key = item.index.fqn
        tensor = tensors[key] = _compact(planner.resolve_data(item)).contiguous()
        offsets[key] = {"saved_offsets": list(item.tensor_data.chunk.offsets)}
        place = _StorageInfo(name, 0, tensor.numel() * tensor.dtype.itemsize)
        results.append(WriteResult(item.index, place.length, place))
    header = {
        "DCP_SHARDING_INFO": json.dumps(offsets),
        "DCP_VERSION": "1.0",
        "format": "pt",
    }
    stream.write(save(tensors, metadata=header))
    return results


def synced(stream: Any) -> None:
    """Waits until a file is on the disk, where files can be waited for."""
    stream.flush()
    try:
        number = stream.fileno()
    except (AttributeError, OSError):
        return
    os.fsync(number)
