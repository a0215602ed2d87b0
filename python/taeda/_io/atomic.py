"""Writing a file so that the old one stays until the new one is complete."""

from __future__ import annotations

import os


class AtomicFile:
    """A file that takes its place on success only.

    Bytes go to a temporary name in the same folder, which is renamed at the end;
    on an error (a full disk, Ctrl-C) it is removed and the old file is untouched.
    What is no regular file (a pipe, /dev/null) is written directly.
    """

    def __init__(self, path) -> None:
        self.path = os.path.realpath(os.fspath(path))
        self.temporary = None
        special = os.path.exists(self.path) and not os.path.isfile(self.path)
        if special:
            self.file = open(self.path, "wb", buffering=0)
            return
        folder, name = os.path.split(self.path)
        tag = f".{os.getpid():x}-{os.urandom(4).hex()}.tmp"
        if isinstance(name, bytes):
            tag = tag.encode()
        temporary = os.path.join(folder, name[:200] + tag)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            fd = os.open(temporary, flags, self._mode())
        except FileNotFoundError:
            raise RuntimeError(f"Parent directory {folder} does not exist.") from None
        self.temporary = temporary
        self.file = os.fdopen(fd, "wb", buffering=0)

    def _mode(self) -> int:
        try:
            return os.stat(self.path).st_mode & 0o777
        except OSError:
            return 0o666  # less the umask

    def write(self, data) -> None:
        """Write all of `data`."""
        view = memoryview(data)
        while len(view):
            view = view[self.file.write(view) :]

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        try:
            self.file.close()
        except OSError:
            if kind is None:
                self._discard()
                raise
        if self.temporary is None:
            return
        if kind is None:
            try:
                os.replace(self.temporary, self.path)
            except OSError:
                self._discard()
                raise
        else:
            self._discard()

    def _discard(self) -> None:
        if self.temporary is not None:
            try:
                os.unlink(self.temporary)
            except OSError:
                pass
