"""The installed package that importlib.metadata sees under as_torch."""

from __future__ import annotations

from importlib import metadata

__all__ = ["Distribution"]


class Distribution(metadata.Distribution):
    """A package that has a name and a version, and no files of its own."""

    def __init__(self, name: str, version: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        }

    def read_text(self, filename: str) -> str | None:
        """The text of one of its metadata files; None where it has no such file."""
        return self._texts.get(filename)

    def locate_file(self, path):
        """Raises FileNotFoundError: nothing of it lies on the disk."""
        raise FileNotFoundError(f"as_torch: no file {path} belongs to this package")
