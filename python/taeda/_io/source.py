"""Random access to bytes: a path, an open file, or an object with read and seek."""

from __future__ import annotations

import os

import taeda

_SMALL = 1 << 20  # files up to this size are read whole


class Source:
    """Bytes that can be read at any offset.

    Offsets count from where the object stood when it was given.
    """

    def __init__(self, file) -> None:
        self._own = None
        if isinstance(file, (str, bytes)) or hasattr(file, "__fspath__"):
            file = self._own = open(file, "rb", buffering=0)
        self.file, self.start, self.data = file, 0, None
        self.fd = None
        try:
            self._measure()
            if self.size <= _SMALL:
                self.data = self._read_all()
        except BaseException:
            self.close()
            raise

    def _measure(self) -> None:
        try:
            self.start = self.file.tell()
            self.size = self.file.seek(0, 2) - self.start
            self.file.seek(self.start)
        except (AttributeError, OSError) as error:
            kind = type(self.file).__name__
            raise AttributeError(
                f"You can only {taeda.__name__}.load from a file that is seekable. "
                "Please pre-load the data into a buffer like io.BytesIO and try to "
                f"load from it instead. This one is of type {kind}."
            ) from error
        if self._own is not None:
            self.fd = self.file.fileno()

    def _read_all(self) -> bytes:
        if self.fd is None and hasattr(self.file, "readinto"):
            buffer = bytearray(self.size)
            count = self.file.readinto(buffer)
            data = bytes(memoryview(buffer)[:count])
        else:
            data = self.file.read(self.size)
        self.file.seek(self.start)
        if len(data) != self.size:
            raise RuntimeError(f"expected {self.size} bytes, read {len(data)}")
        return data

    def read(self, offset: int, count: int) -> bytes:
        """`count` bytes at `offset`; RuntimeError when the file is shorter."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise RuntimeError(
                f"the file is truncated or damaged: {count} bytes at {offset} of "
                f"{self.size}"
            )
        if self.data is not None:
            return self.data[offset : offset + count]
        out = self._at_once(offset, count)
        if len(out) == count:
            return out
        rest = bytearray(count - len(out))
        self.read_into(offset + len(out), memoryview(rest))
        return out + rest

    def _at_once(self, offset: int, count: int) -> bytes:
        """What one call reads of `count` bytes, without a second copy."""
        if self.fd is not None:
            return os.pread(self.fd, count, self.start + offset)
        self.file.seek(self.start + offset)
        return self.file.read(count)

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fill `target` from `offset`."""
        count = len(target)
        if offset < 0 or offset + count > self.size:
            raise RuntimeError(
                f"the file is truncated or damaged: {count} bytes at {offset} of "
                f"{self.size}"
            )
        if self.data is not None:
            target[:] = memoryview(self.data)[offset : offset + count]
            return
        done = 0
        while done < count:
            got = self._some(offset + done, target[done:])
            if not got:
                raise RuntimeError("the file became shorter while it was read")
            done += got

    def _some(self, offset: int, target: memoryview) -> int:
        if self.fd is not None:
            return os.preadv(self.fd, [target], self.start + offset)
        self.file.seek(self.start + offset)
        if hasattr(self.file, "readinto"):
            return self.file.readinto(target)
        part = self.file.read(len(target))
        target[: len(part)] = part
        return len(part)

    def stand_at(self, offset: int) -> None:
        """Leave a file that was given at `offset`."""
        if self._own is None:
            self.file.seek(self.start + offset)

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exception) -> None:
        self.close()
