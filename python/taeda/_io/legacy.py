"""The format before the zip container: a sequence of pickles, then raw storages.

Pickles: a magic number, a version, facts on the writing machine, the object, the
keys of its storages. Then for each key eight bytes with the number of elements, and
the elements.
"""

from __future__ import annotations

import pickle
import sys
from _pickle import UnpicklingError

import taeda
from taeda._io.limits import Allowance, short
from taeda._io.location import restorer
from taeda._io.reader import parse_id, typed
from taeda._io.rebuild import Loading
from taeda._io.storages import (
    byte_width,
    mapped_storage,
    on_cpu,
    storage_bytes,
    swap_bytes,
)

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_TAR_AT = 257  # where POSIX tar headers say what they are


def write_legacy(write, pickled: bytes, storages: dict, dtypes: dict) -> None:
    """Write the old format.

    Args:
        pickled: the object. storages, dtypes: by key.
    """
    system = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for value in (MAGIC, PROTOCOL, system):
        write(pickle.dumps(value, 2))
    write(pickled)
    keys = sorted(storages)
    write(pickle.dumps(keys, 2))
    for key in keys:
        storage = on_cpu(storages[key])
        width = dtypes[key].itemsize if dtypes[key] is not None else 1
        count = storage.nbytes() // width
        write(count.to_bytes(8, "little", signed=True))
        write(storage_bytes(storage))


class _Storages:
    """Storages are made when the pickle names them and filled afterwards."""

    def __init__(
        self, limit: int, allowance: Allowance, map_location, empty: bool
    ) -> None:
        self.left, self.allowance, self.empty = limit, allowance, empty
        self.restore = restorer(map_location)
        self.views: dict = {}  # (key, begin, bytes) -> storage
        self.kept: dict = {}  # key -> (storage, dtype)

    def __call__(self, pid):
        if type(pid) is tuple and len(pid) > 1 and type(pid[0]) is str:
            if pid[0] == "module":
                return pid[1]
        dtype, untyped, key, location, nbytes = parse_id(pid)
        if key not in self.kept:
            if nbytes > self.left:
                raise UnpicklingError(
                    f"the checkpoint is truncated or damaged: storage {short(key)} of "
                    f"{nbytes} bytes, {self.left} are left"
                )
            self.left -= nbytes
            self.allowance.spend(nbytes)
            storage = self.restore(taeda.UntypedStorage(nbytes), location)
            self.kept[key] = storage, dtype
        storage = self.kept[key][0]
        view = pid[5] if len(pid) == 6 else None
        if view is not None:
            storage = self._part(key, storage, view, dtype.itemsize)
        return storage if untyped else typed(storage, dtype)

    def _part(self, key: str, storage, view, itemsize: int):
        """Some elements of a storage, as files of before 2018 name them."""
        numbers = view[1:] if type(view) is tuple and len(view) == 3 else ()
        if [type(n) for n in numbers] != [int, int] or min(numbers) < 0:
            raise UnpicklingError(f"a view of a storage is {short(view)}")
        begin, count = (n * itemsize for n in numbers)
        if begin + count > storage.nbytes():
            raise UnpicklingError(f"a view beyond the end of storage {short(key)}")
        if count == 0:
            return taeda.UntypedStorage(0)
        place = key, begin, count
        if storage.device.type != "cpu":
            raise NotImplementedError(
                f"a view of a storage in a file of before 2018, on {storage.device}: "
                "load it with map_location='cpu'"
            )
        if place not in self.views:
            self.views[place] = mapped_storage(begin, count, storage_bytes(storage))
        return self.views[place]


def load_legacy(source, map_location, machine, allowance: Allowance, empty=False):
    """The object of an old file.

    Args:
        source (Source): the file. machine: (bytes, persistent_load) -> an object
            with `run()` and `at`. allowance: what the file may cost.
        empty (bool): whether storages stay as they are made.
    """
    if source.size > _TAR_AT + 5 and source.read(_TAR_AT, 5) == b"ustar":
        raise RuntimeError(
            "the file is in the .tar format of 2016, which is not read; save it again "
            "with PyTorch first"
        )
    # Pickles stand before the storages, so all of it may be needed.
    allowance.spend(source.size)
    data = source.read(0, source.size)
    with Loading(allowance, fill=None):
        storages = _Storages(len(data), allowance, map_location, empty)
        result, end = _load(data, machine(data, storages), storages)
    source.stand_at(end)  # a program may read on
    return result


def _load(data: bytes, reader, storages: _Storages):
    magic = reader.run()
    if type(magic) is not int or magic != MAGIC:
        raise UnpicklingError("Invalid magic number; corrupt file?")
    version = reader.run()
    if type(version) is not int or version != PROTOCOL:
        raise UnpicklingError(f"Invalid protocol version: {short(version)}")
    system = reader.run()
    result = reader.run()
    keys = reader.run()
    if not isinstance(keys, list):
        raise UnpicklingError(f"expected the list of storages, got {short(keys)}")
    little = not isinstance(system, dict) or system.get("little_endian") is not False
    swap = little != (sys.byteorder == "little")
    end = _fill(data, reader.at, keys, storages, swap)
    return result, end


def _fill(data: bytes, at: int, keys: list, storages: _Storages, swap: bool) -> int:
    """Read the storages' bytes, which begin `at`; where they end."""
    filled = set()
    for key in keys:
        if not isinstance(key, (str, bytes)):
            raise UnpicklingError(f"the key of a storage is {short(key)}")
        key = key.decode("ascii", "replace") if isinstance(key, bytes) else key
        if key not in storages.kept:
            raise UnpicklingError(f"no tensor uses storage {short(key)}")
        storage, dtype = storages.kept[key]
        size = storage.nbytes()
        count = int.from_bytes(data[at : at + 8], "little", signed=True)
        at += 8
        if count * dtype.itemsize != size or at + size > len(data):
            raise UnpicklingError(
                f"the checkpoint is truncated or damaged: storage {short(key)} has "
                f"{count} elements, expected {size // dtype.itemsize}"
            )
        if not storages.empty and storage.device.type != "meta":
            here = on_cpu(storage)  # itself, or what is copied there afterwards
            view = storage_bytes(here)
            view[:] = memoryview(data)[at : at + size]
            if swap:
                swap_bytes(view, byte_width(dtype))
            if here is not storage:
                storage.copy_(here)
        at += size
        filled.add(key)
    if filled != set(storages.kept):
        raise UnpicklingError("the checkpoint is truncated: storages are missing")
    return at
