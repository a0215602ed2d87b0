"""What was compiled as bytes: made on one machine, used by another of its kind."""

from __future__ import annotations

import io
import os
import re
import sys
import zipfile
import zlib
from dataclasses import dataclass

from ._events import warn

__all__ = ["CacheInfo", "load_cache_artifacts", "save_cache_artifacts"]

# Names are hashes of text, compiler, flags and headers, so that a machine on which
# any of these differ never opens the file.
_NAME = re.compile(r"[0-9a-f]{32}\.so")


@dataclass(frozen=True)
class CacheInfo:
    """Which artifacts there are.

    Attributes:
        inductor_artifacts: names of compiled kernels.
    """

    inductor_artifacts: tuple[str, ...]


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """The kernels that this process has compiled or found on disk, in one archive.

    Returns:
        The archive and what is in it; None where there are none.

    Example:
        >>> import taeda
        >>> taeda.compiler.save_cache_artifacts() is None
        True
    """
    compiler = sys.modules.get("taeda._compiler")
    archive, names = io.BytesIO(), []
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path in compiler.opened_kernels() if compiler else ():
            try:
                out.write(path, os.path.basename(path))
            except FileNotFoundError:  # the cache is bounded: another took its place
                continue
            names.append(os.path.basename(path))
    return (archive.getvalue(), CacheInfo(tuple(names))) if names else None


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Puts the kernels of an archive into this machine's cache.

    They are machine code that later compilations run: load only what you trust.

    Args:
        serialized_artifacts: bytes of `save_cache_artifacts`.

    Returns:
        What was put there or was there already; None, with a warning, where the bytes
        are no such archive or there is no cache folder.
    """
    from taeda import _compiler

    folder = _compiler.kernel_folder()
    if folder is None:
        return warn("compile: artifacts are not loaded: there is no cache folder")
    names = []
    try:
        with zipfile.ZipFile(io.BytesIO(serialized_artifacts)) as archive:
            for entry in archive.infolist():
                if not _NAME.fullmatch(entry.filename):
                    raise zipfile.BadZipFile(f"{entry.filename!r} is no kernel")
                if _put(_compiler, os.path.join(folder, entry.filename), archive):
                    names.append(entry.filename)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return warn("compile: artifacts are not loaded: %s", error)
    return CacheInfo(tuple(names))


def _put(compiler, path: str, archive) -> bool:
    """Whether a kernel of the archive is whole in its place afterwards."""
    if compiler.is_whole_kernel(path):
        return True
    data = archive.read(os.path.basename(path))
    near = f"{path}.{os.getpid()}"
    with open(near, "wb") as out:
        out.write(data)
    if not compiler.is_whole_kernel(near):
        os.unlink(near)
        warn("compile: a damaged artifact is left out: %s", os.path.basename(path))
        return False
    os.replace(near, path)  # readers see a whole file or none
    return True
