"""What a checkpoint says about its contents.

Instances are pickled into `.metadata` under PyTorch's names, so the classes' names,
their attributes and the states of TensorProperties are part of the file format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import taeda

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and how long it is in each dimension."""

    offsets: taeda.Size
    sizes: taeda.Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as numbers in files."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _formats() -> tuple:
    """Memory formats in the order of their numbers."""
    return taeda.contiguous_format, taeda.channels_last, taeda.preserve_format


@dataclass
class TensorProperties:
    """What a tensor is beside its size; only the dtype is used."""

    dtype: taeda.dtype = field(default_factory=taeda.get_default_dtype)
    layout: taeda.layout = taeda.strided
    requires_grad: bool = False
    memory_format: taeda.memory_format = taeda.contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple:
        known = _formats()
        if self.memory_format not in known:
            raise RuntimeError(f"Invalid memory_format: {self.memory_format}")
        number = _MEM_FORMAT_ENCODING(known.index(self.memory_format))
        head = self.dtype, self.layout, self.requires_grad
        return (*head, number, self.pin_memory)

    def __setstate__(self, state: tuple) -> None:
        *head, number, pinned = state
        self.dtype, self.layout, self.requires_grad = head
        self.memory_format = _formats()[number.value]
        self.pin_memory = pinned

    @staticmethod
    def create_from_tensor(tensor: taeda.Tensor) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(
            tensor.dtype,
            tensor.layout,
            tensor.requires_grad,
            pin_memory=tensor.is_pinned(),
        )


@dataclass
class TensorStorageMetadata:
    """A tensor: its whole size and the boxes that were stored."""

    properties: TensorProperties
    size: taeda.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Which save or load this was."""

    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint.

    `planner_data` is the planner's (by default: flat name -> path in the nested
    dictionaries), `storage_data` the storage's (MetadataIndex -> place).
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True, init=False)
class MetadataIndex:
    """Names one item: a name and, of a tensor, the offset of a box.

    Args:
        fqn (str): the flat name. offset (sequence of int): of the box.
        index (int): where the box probably is in the list of boxes; two indices that
            differ in it only are equal.
    """

    fqn: str
    offset: taeda.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(
        self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None
    ) -> None:
        # Without an offset the attribute stays the class's, as files have it.
        own = {"fqn": fqn, "index": index}
        if offset is not None:
            own["offset"] = taeda.Size(offset)
        vars(self).update(own)
