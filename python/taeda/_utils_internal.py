"""Paths of the package, by the names that build scripts of extensions ask for."""

from __future__ import annotations

import os

__all__ = ["get_file_path", "get_file_path_2", "get_writable_path"]


def get_file_path(*path_components: str) -> str:
    """A path below the package's folder: `get_file_path("lib", "libtaeda.so")`."""
    return os.path.join(os.path.dirname(__file__), *path_components)


def get_file_path_2(*path_components: str) -> str:
    """Parts of a path, joined."""
    return os.path.join(*path_components)


def get_writable_path(path: str) -> str:
    """The path itself where it can be written to, else that of a new folder."""
    from tempfile import mkdtemp

    writable = os.access(path, os.W_OK)
    return path if writable else mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """The path without links."""
    return os.path.realpath(path)
