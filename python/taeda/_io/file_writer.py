"""`taeda.PyTorchFileWriter`: a zip checkpoint, written record by record."""

from __future__ import annotations

import os

from taeda._io.zip import ZipWriter

__all__ = ["PyTorchFileWriter"]


class PyTorchFileWriter:
    """Writes records of a checkpoint, one after the other.

    Args:
        name_or_buffer: a path, whose stem names the folder that the records lie in, or
            an object with `write` ("archive").
        compute_crc32: whether checksums are computed.
        storage_alignment: 64, to whose multiples records begin.

    Raises:
        RuntimeError: the path cannot be written, or a record has another size than
            what is said.
        NotImplementedError: another alignment.

    Example:
        >>> import io
        >>> writer = taeda.PyTorchFileWriter(file := io.BytesIO())
        >>> writer.write_record("note", b"text", 4)
        >>> writer.write_end_of_file()
        >>> _ = file.seek(0)
        >>> taeda.PyTorchFileReader(file).get_record("note")
        b'text'
    """

    def __init__(
        self, name_or_buffer, compute_crc32: bool = True, storage_alignment: int = 64
    ) -> None:
        if storage_alignment != 64:
            raise NotImplementedError(
                f"PyTorchFileWriter: storage_alignment={storage_alignment}, only 64"
            )
        self._file, root = None, "archive"
        write = getattr(name_or_buffer, "write", None)
        if isinstance(name_or_buffer, (str, os.PathLike)):
            path = os.fspath(name_or_buffer)
            root = os.path.splitext(os.path.basename(path))[0] or root
            try:
                self._file = open(path, "wb")
            except OSError as error:
                raise RuntimeError(f"PytorchStreamWriter: {error}") from error
            write = self._file.write
        self._zip = ZipWriter(write, root, compute_crc32)
        self._names: list[str] = []
        self._version = 3

    def archive_name(self) -> str:
        """The folder that the records lie in."""
        return self._zip.root

    def get_all_written_records(self) -> list[str]:
        """The names of the records, in their order."""
        return list(self._names)

    def set_min_version(self, version: int) -> None:
        """The file says at least this version of the format."""
        self._version = max(self._version, version)

    def write_record(self, name: str, data, size: int) -> None:
        """Append a record.

        Args:
            name: of the record.
            data: bytes-like, a text, or an UntypedStorage.
            size: the number of its bytes.
        """
        from taeda._C import UntypedStorage
        from taeda._io.storages import on_cpu, storage_bytes

        if isinstance(data, UntypedStorage):
            data = storage_bytes(on_cpu(data))
        data = data.encode() if isinstance(data, str) else data
        view = memoryview(data).cast("B")
        if len(view) < size:
            raise RuntimeError(
                f"PytorchStreamWriter: {name!r} has {len(view)} bytes, not {size}"
            )
        self._zip.add(name, view[:size])
        self._names.append(name)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Append a record of zeros without a checksum, which is to be filled later."""
        self._zip.add_space(name, size)
        self._names.append(name)

    def serialization_id(self) -> str:
        """The number made of names and checksums, as it stands now."""
        return f"{len(self._names):020d}{self._zip.crc:020d}"

    def write_end_of_file(self) -> None:
        """Write version, identity and directory; nothing can follow."""
        if "version" not in self._names:
            self._zip.add("version", b"%d\n" % self._version)
        self._zip.add(".data/serialization_id", self.serialization_id().encode())
        self._zip.close()
        if self._file is not None:
            self._file.close()


PyTorchFileWriter.__module__ = "taeda"
