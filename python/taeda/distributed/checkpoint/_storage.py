"""Which storage a checkpoint's name means."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["find_storage"]


def find_storage(
    storage: Any, checkpoint_id: str | os.PathLike | None, reader: bool
) -> Any:
    """The storage that was given, told the name, or the one that takes the name.

    Raises:
        RuntimeError: neither is given, or none takes the name.
    """
    if storage is not None and checkpoint_id is not None:
        storage.reset(checkpoint_id)
    if storage is not None:
        return storage
    if not checkpoint_id:
        one = "storage_reader" if reader else "storage_writer"
        raise RuntimeError(f"`checkpoint_id` must be specified without a {one}")
    from .filesystem import FileSystemReader, FileSystemWriter

    kind = FileSystemReader if reader else FileSystemWriter
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            f"Cannot detect which StorageReader or StorageWriter {checkpoint_id!r} "
            "needs: give storage_reader or storage_writer"
        )
    storage = kind(checkpoint_id)
    storage.reset(checkpoint_id)
    return storage
