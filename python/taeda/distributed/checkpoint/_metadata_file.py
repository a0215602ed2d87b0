"""`.metadata`: a pickle under PyTorch's names, read as data."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import taeda
from taeda._io import names
from taeda._io.limits import Allowance
from taeda._io.machine import Machine
from taeda._io.writer import dump

from . import metadata as kinds

__all__ = ["decode", "encode"]

_HERE = b".distributed.checkpoint."
# Up to PyTorch 2.2 the properties of tensors were those of sharded tensors.
_SHARDED = "torch.distributed._shard.sharded_tensor.metadata"


def _trusted() -> list:
    """The classes that a description is made of; none does more than hold data."""
    from . import filesystem

    own = [getattr(kinds, name) for name in kinds.__all__]
    found: list = [
        *own,
        kinds._MEM_FORMAT_ENCODING,
        filesystem._StorageInfo,
        filesystem._StoragePrefix,
        (kinds.TensorProperties, f"{_SHARDED}.TensorProperties"),
        (kinds._MEM_FORMAT_ENCODING, f"{_SHARDED}.MEM_FORMAT_ENCODING"),
    ]
    layouts = {str(v): v for v in vars(taeda).values() if isinstance(v, taeda.layout)}
    found += [(v, names.torch_name(name)) for name, v in layouts.items()]
    for module in ("pathlib", "pathlib._local"):
        found += [
            (_path, f"{module}.{name}")
            for name in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath")
        ]
    return found


def _path(*parts: str) -> PurePosixPath | PureWindowsPath:
    """A path out of a file: text, which names nothing here."""
    return PurePosixPath(*(p for p in parts if isinstance(p, str)))


def encode(metadata: kinds.Metadata) -> bytes:
    """The bytes of `.metadata`."""
    return _quick(metadata) or dump(metadata, 4, pickle)[0]


def _quick(metadata: kinds.Metadata) -> bytes | None:
    """The C pickler's bytes with PyTorch's names in the place of ours.

    In protocol 2 a global name is a line that is written once. Where our name stands
    anywhere else, in the name of a tensor say, there is no result.
    """
    data = pickle.dumps(metadata, 2)
    first, *rest = data.split(b"ctaeda")
    lines = [piece.split(b"\n", 2)[:2] for piece in rest]
    whole = all(m == b"" or m.startswith(_HERE) for m, *_ in lines)
    once = len({tuple(line) for line in lines}) == len(lines)
    if not (whole and once and data.count(b"taeda") == len(lines)):
        return None
    return b"ctorch".join([first, *rest])


def _no_storage(key: Any) -> Any:
    raise pickle.UnpicklingError("the description of a checkpoint has tensors in it")


def decode(data: bytes) -> kinds.Metadata:
    """The description in some bytes.

    Nothing in it is run: classes beyond those of descriptions must have been trusted
    with `taeda.serialization.add_safe_globals`.

    Raises:
        UnpicklingError: it is damaged, or names something else.
    """
    block = names.enter(_trusted())
    try:
        allowance = Allowance(len(data))
        found = Machine(data, _no_storage, allowance=allowance).run()
        _check(found)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise pickle.UnpicklingError(
            f"the description of the checkpoint is damaged: {str(error)[:200]}"
        ) from error
    finally:
        names.leave(block)
    return found


def _check(found: Any) -> None:
    """Refuses a description that readers could not follow.

    Raises:
        ValueError: what is wrong with it.
    """
    if type(found) is not kinds.Metadata:
        raise ValueError(f"it is a {type(found).__name__}")
    for name, entry in _mapping(found.state_dict_metadata, "contents").items():
        if type(name) is not str:
            raise ValueError(f"a name is a {type(name).__name__}")
        if type(entry) is kinds.TensorStorageMetadata:
            _check_tensor(name, entry)
        elif type(entry) is not kinds.BytesStorageMetadata:
            raise ValueError(f"{name[:60]!r} is a {type(entry).__name__}")
    if found.storage_data is not None:
        for index, place in _mapping(found.storage_data, "places").items():
            _check_place(index, place)


def _mapping(value: Any, what: str) -> Mapping:
    if not isinstance(value, Mapping):
        raise ValueError(f"its {what} are a {type(value).__name__}")
    return value


def _check_tensor(name: str, entry: kinds.TensorStorageMetadata) -> None:
    _sizes(name, entry.size)
    if not isinstance(entry.properties, kinds.TensorProperties) or not isinstance(
        entry.properties.dtype, taeda.dtype
    ):
        raise ValueError(f"tensor {name[:60]!r} has no dtype")
    for box in entry.chunks:
        _sizes(name, box.offsets)
        _sizes(name, box.sizes)
        if not len(box.offsets) == len(box.sizes) == len(entry.size):
            raise ValueError(f"a chunk of {name[:60]!r} has another dimension")


def _sizes(name: str, value: Any) -> None:
    if not isinstance(value, tuple) or any(type(n) is not int or n < 0 for n in value):
        raise ValueError(f"a size of {name[:60]!r} is no list of numbers")


def _check_place(index: Any, place: Any) -> None:
    """Places of other storages are theirs; ours must lie in the folder."""
    from .filesystem import _StorageInfo

    if not isinstance(index, kinds.MetadataIndex) or type(index.fqn) is not str:
        raise ValueError("a place belongs to no name")
    if not isinstance(place, _StorageInfo):
        return
    path = place.relative_path
    if type(path) is not str or os.path.isabs(path) or ".." in path.split("/"):
        raise ValueError(f"file {str(path)[:60]!r} is outside the checkpoint")
    for number in (place.offset, place.length):
        if type(number) is not int or number < 0:
            raise ValueError(f"a place in {path[:60]!r} is no number")
