"""Files: their names, their streams, and what these hold."""

from __future__ import annotations

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
    no_length,
)
from .utils import IterableWrapperIterDataPipe

__all__ = [
    "FileListerIterDataPipe",
    "FileOpenerIterDataPipe",
    "StreamReaderIterDataPipe",
]


class _OfSaidLength(IterDataPipe):
    """A pipe that is as long as its maker says; -1 for unknown."""

    length = -1

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_OfSaidLength):
    """Paths of files (functional: `list_files`).

    Args:
        root: a folder, several of them, or a pipe of them.
        masks: patterns of names (`*.jpg`), or one.
        recursive: inner folders too. abspath: whole paths.
        non_deterministic: in the system's order in place of the sorted one.
        length: what `len` says.
    """

    def __init__(
        self,
        root=".",
        masks="",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        root = [root] if isinstance(root, str) else root
        is_pipe = isinstance(root, IterDataPipe)
        self.datapipe = root if is_pipe else IterableWrapperIterDataPipe(root)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self):
        how = (self.masks, self.recursive, self.abspath, self.non_deterministic)
        for folder in self.datapipe:
            yield from get_file_pathnames_from_root(folder, *how)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_OfSaidLength):
    """(path, open stream) of each path (functional: `open_files`).

    Args:
        datapipe: the paths.
        mode: "r", "b" or "t", also "rb" and "rt". encoding: of text.
        length: what `len` says.

    Raises:
        ValueError: another mode; an encoding of binary files.
    """

    def __init__(
        self, datapipe, mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:
        if mode.removeprefix("r") not in ("", "b", "t"):
            raise ValueError(f"Invalid mode {mode}")
        if encoding is not None and mode.endswith("b"):
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.length = datapipe, length
        self.mode, self.encoding = mode, encoding

    def __iter__(self):
        yield from get_file_binaries_from_pathnames(
            self.datapipe, self.mode, self.encoding
        )


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, content) of each (path, stream), which is closed (`read_from_stream`).

    Args:
        datapipe: the streams.
        chunk: give the content in pieces of so many bytes or characters.
    """

    def __init__(self, datapipe, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield path, content
            stream.close()
