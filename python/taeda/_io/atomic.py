"""Writing a file so that the old one stays until the new one is complete."""

from __future__ import annotations

import errno
import os


class AtomicFile:
    """A file that takes its place on success only.

    Bytes go to a temporary name in the same folder, which is synced and renamed at the
    end, and then the folder is synced: after a crash the name stands for the old file
    or for the whole new one. On an error (a full disk, Ctrl-C) the temporary file is
    removed and the old file is untouched.
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
        fd = os.open(temporary, flags, self._mode())
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
        renamed = False
        try:
            with self.file:
                if kind is None and self.temporary is not None:
                    # A rename may reach the disk before the bytes do: a crash would
                    # then leave an empty file under the old one's name.
                    os.fsync(self.file.fileno())
            if kind is None and self.temporary is not None:
                os.replace(self.temporary, self.path)
                renamed = True
        finally:
            if self.temporary is not None and not renamed:
                self._discard()
        if renamed:
            _sync_folder(os.path.dirname(self.path))

    def _discard(self) -> None:
        try:
            os.unlink(self.temporary)
        except OSError:
            pass


def _sync_folder(folder) -> None:
    """Make a rename in a folder lasting, where folders can be synced."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # files may be made in it, but not listed
    try:
        os.fsync(fd)
    except OSError as error:
        # Network file systems order their own renames.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)
