"""File systems: what a checkpoint's reader and writer ask of one."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taeda._io.atomic import _sync_folder

__all__ = ["FileSystem", "FileSystemBase"]


class FileSystemBase(ABC):
    """Derive from this to keep checkpoints somewhere else."""

    @contextmanager
    @abstractmethod
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[Any]:
        """An open file."""

    @abstractmethod
    def concat_path(self, path: str | os.PathLike, suffix: str) -> str | os.PathLike:
        """The path of a name in a folder."""

    @abstractmethod
    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        """Gives a file another name, in one step, in place of what had it."""

    @abstractmethod
    def init_path(self, path: str | os.PathLike) -> str | os.PathLike:
        """A path in the form that the other methods take."""

    @abstractmethod
    def mkdir(self, path: str | os.PathLike) -> None:
        """Makes a folder, and those above it, if it is not there."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Can a checkpoint of this name lie here?"""

    @abstractmethod
    def exists(self, path: str | os.PathLike) -> bool:
        """Is there such a file?"""

    @abstractmethod
    def rm_file(self, path: str | os.PathLike) -> None:
        """Deletes a file."""


class FileSystem(FileSystemBase):
    """The system's own files."""

    @contextmanager
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[Any]:
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path: str | os.PathLike, suffix: str) -> Path:
        return Path(path) / suffix

    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        os.replace(path, new_path)

    def init_path(self, path: str | os.PathLike) -> Path:
        return Path(path)

    def mkdir(self, path: str | os.PathLike) -> None:
        os.makedirs(path, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        text = str(checkpoint_id)
        parents = Path(text).parents
        return "://" not in text and any(os.access(p, os.W_OK) for p in parents)

    def exists(self, path: str | os.PathLike) -> bool:
        return os.path.exists(path)

    def rm_file(self, path: str | os.PathLike) -> None:
        os.unlink(path)

    def ls(self, path: str | os.PathLike) -> list[str]:
        """The paths of what is in a folder."""
        return [os.path.join(path, name) for name in os.listdir(path)]

    def sync(self, path: str | os.PathLike) -> None:
        """Makes names in a folder lasting."""
        _sync_folder(path)
