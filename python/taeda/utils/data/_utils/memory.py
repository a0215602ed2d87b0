"""Memory that processes pass on: anonymous files and their mappings.

A file has no name in /dev/shm, whose size limit does not apply to it, and goes with
its last mapping, even if a process is killed.
"""

from __future__ import annotations

import os

import taeda

FILE_BYTES = 1 << 16  # data from this size on get a file of their own


def new_file(size: int) -> int:
    """The descriptor of a new file of `size` zeros in memory."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("taeda-batch", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def map_file(fd: int, size: int):
    """A file's bytes as a storage, shared with other processes; `fd` may be closed.

    Not by the module mmap, whose objects keep a descriptor each (until Python 3.13):
    a program that keeps a thousand batches would have no descriptors left. Nor by a
    finalizer in Python, in which Ctrl-C would be lost, and the mapping with it.

    Raises:
        RuntimeError: there is no room in the process.
    """
    return taeda._C._map_descriptor(fd, size)


class Arena:
    """Tensors made in files, so that passing them on copies nothing.

    An arena belongs to one batch of one worker. Files that were not taken when it is
    closed live as long as their tensors.
    """

    def __init__(self) -> None:
        self._files: dict[int, tuple[int, int]] = {}  # address -> (descriptor, bytes)

    def like(self, sample, count: int):
        """An empty tensor for `count` tensors like `sample`.

        None where ordinary memory will do, as for little data, or must.
        """
        elements = count * sample.numel()
        size = elements * sample.dtype.itemsize
        if size < FILE_BYTES or type(sample) is not taeda.Tensor:
            return None
        if sample.device.type != "cpu" or sample.requires_grad:
            return None
        fd = new_file(size)
        try:
            storage = map_file(fd, size)
        except BaseException:
            os.close(fd)
            raise
        self._files[storage.data_ptr()] = fd, size
        empty = taeda.empty(0, dtype=sample.dtype)
        return empty.set_(storage, 0, (count, *sample.shape))

    def take(self, address: int, size: int) -> int | None:
        """The descriptor of the file with these bytes; the caller has to close it."""
        if self._files.get(address, (0, 0))[1] != size:
            return None
        return self._files.pop(address)[0]

    def close(self) -> None:
        """Close the files that nobody took."""
        while self._files:
            os.close(self._files.popitem()[1][0])
