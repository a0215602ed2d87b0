"""Checkpoints in the zip container: written and read."""

from __future__ import annotations

import os
import sys
from _pickle import UnpicklingError

import taeda
from taeda._io import names
from taeda._io.limits import Allowance, short
from taeda._io.location import restorer
from taeda._io.storages import (
    byte_width,
    mapped_storage,
    on_cpu,
    storage_bytes,
    swap_bytes,
)
from taeda._io.zip import _STORED, ZipReader, ZipWriter

_MAX_BYTES = 1 << 62
_MAX_NAME = 1000
_MOST_PACKED, _BOMB = 32, 2048  # real pickles shrink to a tenth at best
_PARALLEL_BYTES = 1 << 22
_MAPPED_ALIGNMENT = 16  # of complex128, the widest element
FORMAT_VERSION = b"3\n"


def write_zip(
    write,
    root: str,
    pickled: bytes,
    storages: dict,
    checksums: bool = True,
    tells_order: bool = True,
    empty: bool = False,
) -> None:
    """Write a checkpoint's records, in PyTorch's order and with its names.

    `empty` leaves space for the storages, which may be on the meta device.
    """
    archive = ZipWriter(write, root, checksums)
    archive.add("data.pkl", pickled)
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", b"64")
    if tells_order:
        archive.add("byteorder", sys.byteorder.encode())
    for key, storage in storages.items():
        if empty:
            archive.add_space(f"data/{key}", storage.nbytes())
        else:
            archive.add(f"data/{key}", storage_bytes(on_cpu(storage)))
    archive.add("version", FORMAT_VERSION)
    count, total = len(storages), archive.crc
    archive.add(".data/serialization_id", b"%020d%020d" % (count, total))
    archive.close()


class StorageLoader:
    """Turns persistent ids into storages, each read once.

    Args:
        archive (ZipReader): the records. mapping: mmap object over the file, or None.
        order (str): byte order of the numbers in the file.
        empty (bool): whether storages stay as they are made, and nothing is read.
    """

    def __init__(
        self, archive: ZipReader, root: str, map_location, mapping, order, empty=False
    ):
        self.archive, self.root, self.mapping = archive, root, mapping
        self.restore = restorer(map_location)
        self.swap, self.empty = order != sys.byteorder, empty
        self.kept: dict = {}
        # Storages that stay on the CPU are filled at the end, by several threads.
        self.later = _stays(map_location)
        self.jobs: list = []

    def __call__(self, pid):
        dtype, untyped, key, location, nbytes = parse_id(pid)
        if key not in self.kept:
            self.kept[key] = self._load(key, location, nbytes, dtype)
        storage = self.kept[key]
        if storage.nbytes() < nbytes:
            raise UnpicklingError(f"storage {short(key)} is claimed to have two sizes")
        return storage if untyped else typed(storage, dtype)

    def _load(self, key: str, location: str, nbytes: int, dtype):
        name = f"{self.root}/data/{key}"
        entry = self.archive.entries.get(name)
        if entry is None:
            raise RuntimeError(f"the checkpoint has no record {short(name)}")
        if entry.size != nbytes:
            raise RuntimeError(
                f"record {short(name)}: record size ({entry.size} bytes) does not "
                f"match expected size ({nbytes} bytes)"
            )
        if self.mapping is not None and nbytes and entry.method == _STORED:
            start = self.archive.start_of(name)
            # Kernels rely on whole elements at their natural places.
            if start % _MAPPED_ALIGNMENT == 0 and not self.swap:
                storage = mapped_storage(start, nbytes, self.mapping)
                return self.restore(storage, location)
        self.archive.pay(entry)
        storage = taeda.UntypedStorage(nbytes)
        if self.empty:
            return self.restore(storage, location)
        job = name, storage_bytes(storage), byte_width(dtype)
        if self.later and location == "cpu":
            self.jobs.append(job)
            return storage
        self._fill(job)
        return self.restore(storage, location)

    def _fill(self, job) -> None:
        name, view, width = job
        self.archive.read_into(name, view)
        if self.swap:
            swap_bytes(view, width)

    def finish(self) -> None:
        """Read what has been put off."""
        total = sum(len(view) for _, view, _ in self.jobs)
        if total < _PARALLEL_BYTES or self.archive.source.fd is None:
            for job in self.jobs:
                self._fill(job)
        else:
            in_threads(self._fill, self.jobs)
        self.jobs = []


def _stays(map_location) -> bool:
    """Does this leave CPU storages where they are?"""
    if map_location is None or isinstance(map_location, dict):
        return not map_location or "cpu" not in map_location
    return isinstance(map_location, (str, taeda.device)) and str(map_location) == "cpu"


def in_threads(function, jobs: list) -> None:
    """Call a function for every job, in as many threads as there are processors."""
    from threading import Thread

    waiting, errors = list(reversed(jobs)), []

    def work() -> None:
        while waiting and not errors:
            try:
                job = waiting.pop()
            except IndexError:
                return
            try:
                function(job)
            except BaseException as error:
                errors.append(error)

    count = min(4, len(os.sched_getaffinity(0)), len(jobs))
    threads = [Thread(target=work) for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def typed(storage, dtype):
    """A storage with a dtype, as old files have them."""
    from taeda.storage import TypedStorage

    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _text(value, what: str) -> str:
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if not isinstance(value, str):
        raise UnpicklingError(f"{what} of a storage is {short(value)}")
    return value


def parse_id(pid) -> tuple:
    """(dtype, untyped, key, location, bytes) of a persistent id, checked."""
    if type(pid) is not tuple or not pid:
        raise UnpicklingError(f"expected the id of a storage, got {short(pid)}")
    tag = pid[0]
    if type(tag) is bytes:  # texts of Python 2, read with encoding="bytes"
        tag = tag.decode("ascii", "replace")
    if type(tag) is not str or tag != "storage":
        what = short(tag) if type(tag) is str else f"<class {type(tag).__name__!r}>"
        raise UnpicklingError(
            f"Only persistent_load of storage is allowed, but got {what}"
        )
    if len(pid) not in (5, 6):
        raise UnpicklingError(f"expected the id of a storage, got {short(pid)}")
    kind, key, location, count = pid[1:5]
    if not isinstance(kind, names.StorageKind):
        raise UnpicklingError(f"{short(kind)} is no storage class")
    if type(count) is not int or not 0 <= count <= _MAX_BYTES:
        raise UnpicklingError(f"a storage of {short(count)} elements")
    key, location = _text(key, "the key"), _text(location, "the location")
    if max(len(key), len(location)) > _MAX_NAME:
        raise UnpicklingError(
            f"the key or the location of a storage is too long: {short(key)}, "
            f"{short(location)}"
        )
    dtype = kind.dtype
    return dtype, kind.untyped, key, location, count * dtype.itemsize


class CheckpointArchive:
    """An opened zip checkpoint."""

    def __init__(self, source, allowance: Allowance) -> None:
        self.zip = ZipReader(source, allowance)
        self.root = self.zip.first.partition("/")[0]
        if f"{self.root}/constants.pkl" in self.zip.entries:
            raise RuntimeError(
                "the file is a TorchScript archive, which this library cannot run"
            )
        self._check_version()

    def _check_version(self) -> None:
        for name in ("version", ".data/version"):
            path = f"{self.root}/{name}"
            if path in self.zip.entries:
                text = self.zip.read(path)
                break
        else:
            raise RuntimeError("the checkpoint has no record 'version'")
        if len(text) > 100 or not text.strip().isdigit():
            raise RuntimeError(f"the checkpoint's version is {text[:20]!r}")
        if not 1 <= int(text) <= 10:
            raise RuntimeError(f"version {int(text)} of the format is not supported")

    def pickle(self) -> bytes:
        """The record data.pkl."""
        path = f"{self.root}/data.pkl"
        if path not in self.zip.entries:
            raise RuntimeError("the checkpoint has no record 'data.pkl'")
        # Each byte of a pickle is work; those of a bomb cost the file nothing.
        entry = self.zip.entries[path]
        bomb = max(0, entry.size - _MOST_PACKED * entry.compressed)
        self.zip.allowance.spend(_BOMB * bomb)
        return self.zip.read(path)

    def byte_order(self, default: str) -> str:
        """Of the numbers; files without a record are the `default`."""
        path = f"{self.root}/byteorder"
        if path not in self.zip.entries:
            return default
        order = self.zip.read(path).decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {order!r:.20}")
        return order
