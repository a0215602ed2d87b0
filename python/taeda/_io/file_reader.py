"""`taeda.PyTorchFileReader`: the records of a zip checkpoint, one by one."""

from __future__ import annotations

from taeda._io.limits import Allowance, short
from taeda._io.source import Source
from taeda._io.zip import ZipReader

__all__ = ["PyTorchFileReader"]

_IDENTITY = ".data/serialization_id"


class PyTorchFileReader:
    """Reads records of a checkpoint by their names, without the folder they lie in.

    Args:
        name_or_buffer: a path, or a file that is open for reading and can be sought.

    Raises:
        RuntimeError: it cannot be read, or is no zip file; later, for a name that it
            does not have.

    Example:
        >>> import io
        >>> taeda.save(taeda.ones(2), file := io.BytesIO())
        >>> _ = file.seek(0)
        >>> taeda.PyTorchFileReader(file).get_record_size("data/0")
        8
    """

    def __init__(self, name_or_buffer) -> None:
        try:
            source = Source(name_or_buffer)
            self._zip = ZipReader(source, Allowance(source.size))
        except (OSError, RuntimeError) as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {error}"
            ) from error
        self._root = self._zip.first.partition("/")[0]

    def _entry(self, name: str):
        entry = self._zip.entries.get(f"{self._root}/{name}")
        if entry is None:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {short(name)}: file not "
                "found"
            )
        return entry

    def get_all_records(self) -> list[str]:
        """The names of all records, in the file's order."""
        return [name.partition("/")[2] for name in self._zip.entries]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return f"{self._root}/{name}" in self._zip.entries

    def get_record(self, name: str) -> bytes:
        """The bytes of a record, checked against its checksum."""
        return self._zip.read(self._entry(name).name)

    def get_record_size(self, name: str) -> int:
        """The number of its bytes."""
        return self._entry(name).size

    def get_record_offset(self, name: str) -> int:
        """Where in the file its bytes begin."""
        return self._zip.start_of(self._entry(name).name)

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file its header begins."""
        return self._entry(name).offset

    def get_record_offset_no_read(
        self, cursor: int, name: str, size: int, storage_alignment: int = 64
    ) -> int:
        """Where a record's bytes would begin that is written at a place.

        Args:
            cursor: where its header begins.
            name: of the record.
            size: the number of its bytes.
            storage_alignment: its bytes begin at a multiple of it.
        """
        header = 30 + len(f"{self._root}/{name}".encode())
        if size >= 0xFFFFFFFF or cursor >= 0xFFFFFFFF:
            header += 4 + 8 * (2 * (size >= 0xFFFFFFFF) + (cursor >= 0xFFFFFFFF))
        end = cursor + header + 4
        return end + -end % storage_alignment

    def get_storage_from_record(self, name: str, numel: int, dtype):
        """A record's bytes as the storage of an empty tensor of a dtype.

        Raises:
            RuntimeError: the record has not as many elements.
        """
        import taeda
        from taeda._io.storages import storage_bytes

        entry = self._entry(name)
        if entry.size != numel * dtype.itemsize:
            raise RuntimeError(
                f"get_storage_from_record: {numel} elements of {dtype} do not fit the "
                f"{entry.size} bytes of {short(name)}"
            )
        self._zip.pay(entry)
        storage = taeda.UntypedStorage(entry.size)
        self._zip.read_into(entry.name, storage_bytes(storage))
        return taeda.empty(0, dtype=dtype).set_(storage, 0, (0,), (1,))

    def serialization_id(self) -> str:
        """The number that the writer has made of names and checksums; or ""."""
        if not self.has_record(_IDENTITY):
            return ""
        return self.get_record(_IDENTITY).decode("ascii", "replace")


PyTorchFileReader.__module__ = "taeda"
