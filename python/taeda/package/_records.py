"""The records of a package: of its file, or of the folder that it was unpacked to."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

__all__ = ["Folder", "Records", "opened"]


class Records:
    """Those of a file. All lie in one folder of it."""

    def __init__(self, file) -> None:
        self._zip = zipfile.ZipFile(file)
        names = [n for n in self._zip.namelist() if not n.endswith("/")]
        if not names:
            raise RuntimeError(f"PackageImporter: there is no record in {file!r}")
        self.name = names[0].partition("/")[0]
        self._names = {n.partition("/")[2]: n for n in names}

    def paths(self) -> list[str]:
        """Their names."""
        return list(self._names)

    def path(self, path: str) -> str | None:
        """Where one lies by itself: nowhere."""
        return None

    def read(self, path: str) -> bytes:
        """The bytes of one; FileNotFoundError where it is not."""
        if path not in self._names:
            raise FileNotFoundError(f"the package has no record {path!r}")
        return self._zip.read(self._names[path])


class Folder:
    """Those of a folder."""

    def __init__(self, folder) -> None:
        self._folder = Path(folder)
        self.name = self._folder.name

    def paths(self) -> list[str]:
        """Their names."""
        files = (f for f in self._folder.rglob("*") if f.is_file())
        return sorted(f.relative_to(self._folder).as_posix() for f in files)

    def path(self, path: str) -> str | None:
        """Where one lies by itself."""
        file = self._folder / path
        return str(file) if file.is_file() else None

    def read(self, path: str) -> bytes:
        """The bytes of one; FileNotFoundError where it is not."""
        return (self._folder / path).read_bytes()


def opened(source):
    """The records of a path, or of a file that is open."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return Folder(source)
    if not isinstance(source, (str, os.PathLike)) and not hasattr(source, "read"):
        raise NotImplementedError(
            f"PackageImporter: expected a path or a file, got {type(source).__name__}"
        )
    return Records(source)
