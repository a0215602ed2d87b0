"""The zip container of checkpoints, read and written.

PKWARE's APPNOTE 6.3.10, with ZIP64. Records are stored, not compressed, and start
at multiples of 64 bytes so that a file can be mapped; deflated ones are read too.
"""

from __future__ import annotations

import struct
import zlib

from taeda._C import _crc32
from taeda._io.limits import Allowance, short
from taeda._io.source import Source

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_UTF8, _ENCRYPTED = 0x800, 0x1
_STORED, _DEFLATED = 0, 8
_MAX32 = 0xFFFFFFFF
_ENTRY_BYTES = 512  # memory of one record's entry
_BLOCK = 1 << 20
_DATE = (1 << 5) | 1  # 1 January 1980
ALIGNMENT = 64
_SPACE = b"TS\0\0"  # an extra field: what is here comes without a checksum


class ZipWriter:
    """Writes records to a `write` function, then the directory.

    Args:
        write: takes bytes-like objects.
        root: name of the folder that all records lie in.
        checksums: whether they are computed; all are 0 if not.
    """

    def __init__(self, write, root: str, checksums: bool = True) -> None:
        self._write, self.root, self._checksums = write, root, checksums
        self._pending = bytearray()
        self._at = 0
        self._directory: list[bytes] = []
        self.crc = 0  # over the checksums of all records

    def add(self, name: str, data) -> None:
        """Append one record; `data` is bytes-like."""
        data = memoryview(data).cast("B")
        crc = _crc32(data, 0) if self._checksums else 0
        self._begin(name, len(data), crc)
        self._emit(data)

    def add_space(self, name: str, size: int) -> None:
        """Append a record of zeros, which others will fill: it has no checksum."""
        self._begin(name, size, 0, _SPACE)
        zeros = bytes(min(size, _BLOCK))
        for at in range(0, size, _BLOCK):
            self._emit(zeros[: size - at])

    def _begin(self, name: str, size: int, crc: int, mark: bytes = b"") -> None:
        self.crc = _crc32(crc.to_bytes(4, "little"), self.crc)
        path = f"{self.root}/{name}".encode()
        offset, extra = self._at, b""
        if size >= _MAX32:
            extra = struct.pack("<2H2Q", 1, 16, size, size)
        padding = -(offset + _LOCAL.size + len(path) + len(extra) + 4) % ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        version = 45 if size >= _MAX32 else 20
        short = min(size, _MAX32)
        sizes = crc, short, short, len(path), len(extra)
        head = _LOCAL.pack(
            b"PK\3\4", version, _UTF8, _STORED, 0, _DATE, *sizes[:3], *sizes[3:]
        )
        self._emit(head + path + extra)
        self._note(path, crc, size, offset, mark)

    def _note(self, path: bytes, crc: int, size: int, offset: int, mark: bytes) -> None:
        large = [v for v in (size, size, offset) if v >= _MAX32]
        extra = b""
        if large:
            extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large)
        extra += mark
        version = 45 if large else 20
        short = min(size, _MAX32)
        entry = _CENTRAL.pack(
            b"PK\1\2",
            version,
            version,
            _UTF8,
            _STORED,
            0,
            _DATE,
            crc,
            short,
            short,
            len(path),
            len(extra),
            0,
            0,
            0,
            0,
            min(offset, _MAX32),
        )
        self._directory.append(entry + path + extra)

    def _emit(self, data) -> None:
        self._at += len(data)
        if len(data) < 1 << 16:
            self._pending += data
            if len(self._pending) < 1 << 20:
                return
            data = b""
        if self._pending:
            self._write(bytes(self._pending))
            self._pending.clear()
        if len(data):
            self._write(data)

    def close(self) -> None:
        """Write the directory."""
        start, count = self._at, len(self._directory)
        for entry in self._directory:
            self._emit(entry)
        size = self._at - start
        end64 = self._at
        body = _END64.size - 12
        rest = (45, 45, 0, 0, count, count, size, start)
        self._emit(_END64.pack(b"PK\6\6", body, *rest))
        self._emit(_LOCATOR64.pack(b"PK\6\7", 0, end64, 1))
        few = min(count, 0xFFFF)
        place = min(size, _MAX32), min(start, _MAX32)
        self._emit(_END.pack(b"PK\5\6", 0, 0, few, few, *place, 0))
        if self._pending:
            self._write(bytes(self._pending))
            self._pending.clear()


class Entry:
    """One record of a directory."""

    __slots__ = (
        *("compressed", "crc", "flags", "method", "name", "offset", "size"),
        "is_space",
    )


def _damaged(text: str) -> RuntimeError:
    return RuntimeError(f"the checkpoint is truncated or damaged: {text}")


def _wrong_size(entry: Entry) -> RuntimeError:
    return _damaged(f"{short(entry.name)} does not unpack to its size")


class ZipReader:
    """The records of a zip file, each checked against its checksum if it has one.

    What is read into memory is paid for; records may claim any size, and overlap.
    """

    def __init__(self, source: Source, allowance: Allowance) -> None:
        self.source, self.allowance = source, allowance
        count, size, start = self._find_directory()
        if count * _CENTRAL.size > size:
            raise _damaged(f"{count} records in a central directory of {size} bytes")
        allowance.spend(size + _ENTRY_BYTES * count)
        self.entries: dict[str, Entry] = {}
        self.first = ""
        self._read_directory(source.read(start, size), count)
        # Files that were written without checksums have 0 for all of them.
        self.checked = any(entry.crc for entry in self.entries.values())
        self._starts: dict[str, int] = {}

    def _find_directory(self) -> tuple[int, int, int]:
        size = self.source.size
        tail_at = max(0, size - (1 << 16) - _END.size)
        tail = self.source.read(tail_at, size - tail_at)
        place = tail.rfind(b"PK\5\6")
        if place < 0 or place + _END.size > len(tail):
            raise _damaged("no end of central directory")
        fields = _END.unpack_from(tail, place)
        disk, first_disk, here, count, length, start, comment = fields[1:]
        if place + _END.size + comment != len(tail):
            raise _damaged("bytes after the end of central directory")
        if disk or first_disk or here != count:
            raise _damaged("it claims to span several disks")
        end = tail_at + place
        locator_at = end - _LOCATOR64.size
        if locator_at >= 0:
            locator = self.source.read(locator_at, _LOCATOR64.size)
            if locator[:4] == b"PK\6\7":
                _, disk, end, disks = _LOCATOR64.unpack(locator)
                if disk or disks != 1 or end > locator_at - _END64.size:
                    raise _damaged("a ZIP64 locator that points nowhere")
                count, length, start = self._zip64(end, (count, length, start))
        if start + length != end:
            raise _damaged("the central directory is not where it should be")
        return count, length, start

    def _zip64(self, at: int, short: tuple) -> tuple[int, int, int]:
        fields = _END64.unpack(self.source.read(at, _END64.size))
        if fields[0] != b"PK\6\6" or fields[1] < _END64.size - 12:
            raise _damaged("no ZIP64 end of central directory")
        disk, first_disk, here, count, length, start = fields[4:]
        if disk or first_disk or here != count:
            raise _damaged("it claims to span several disks")
        limits = (0xFFFF, _MAX32, _MAX32)
        for wide, narrow, limit in zip(
            (count, length, start), short, limits, strict=True
        ):
            if narrow not in (wide, limit):
                raise _damaged("its two directories disagree")
        return count, length, start

    def _read_directory(self, data: bytes, count: int) -> None:
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > len(data):
                raise _damaged("a short central directory")
            fields = _CENTRAL.unpack_from(data, at)
            if fields[0] != b"PK\1\2":
                raise _damaged("a wrong signature in the central directory")
            name_size, extra_size, comment_size, disk = fields[10:14]
            at += _CENTRAL.size
            stop = at + name_size + extra_size + comment_size
            if stop > len(data) or disk:
                raise _damaged("a record that ends outside the central directory")
            entry = Entry()
            entry.flags, entry.method = fields[3], fields[4]
            entry.crc, entry.compressed, entry.size = fields[7:10]
            entry.offset = fields[16]
            try:
                entry.name = data[at : at + name_size].decode()
            except UnicodeDecodeError:
                raise _damaged("a record name that is no UTF-8") from None
            extra = data[at + name_size : at + name_size + extra_size]
            entry.is_space = extra.endswith(_SPACE)
            _widen(entry, extra)
            self._keep(entry)
            at = stop
        if at != len(data):
            raise _damaged("bytes after the last record of the central directory")

    def _keep(self, entry: Entry) -> None:
        if entry.name in self.entries:
            raise _damaged(f"two records named {short(entry.name)}")
        if entry.flags & _ENCRYPTED:
            raise _damaged(f"{short(entry.name)} is encrypted")
        if entry.method not in (_STORED, _DEFLATED):
            raise _damaged(f"{short(entry.name)} uses compression {entry.method}")
        if entry.method == _STORED and entry.size != entry.compressed:
            raise _damaged(f"{short(entry.name)} has two sizes")
        if entry.offset + entry.compressed > self.source.size:
            raise _damaged(f"{short(entry.name)} ends outside the file")
        self.first = self.first or entry.name
        self.entries[entry.name] = entry

    def start_of(self, name: str) -> int:
        """Where the bytes of a record begin."""
        start = self._starts.get(name)
        if start is None:
            start = self._starts[name] = self._check_local(self.entries[name])
        return start

    def _check_local(self, entry: Entry) -> int:
        fields = _LOCAL.unpack(self.source.read(entry.offset, _LOCAL.size))
        signature, _, flags, method = fields[:4]
        crc, compressed, size, name_size, extra_size = fields[6:]
        name_at = entry.offset + _LOCAL.size
        name = self.source.read(name_at, name_size)
        same = (
            signature == b"PK\3\4"
            and method == entry.method
            and flags == entry.flags
            and name == entry.name.encode()
        )
        if same and not flags & 8 and max(compressed, size) < _MAX32:
            found = crc, compressed, size
            same = found == (entry.crc, entry.compressed, entry.size)
        if not same:
            raise _damaged(f"the header of {short(entry.name)} and its entry differ")
        start = name_at + name_size + extra_size
        if start + entry.compressed > self.source.size:
            raise _damaged(f"{short(entry.name)} ends outside the file")
        return start

    def read(self, name: str) -> bytes:
        """The bytes of a record."""
        entry = self.entries[name]
        self.pay(entry)
        if entry.method == _DEFLATED:
            self.pay(entry)  # for the copy
            target = bytearray(entry.size)
            self._inflate(entry, memoryview(target))
            return bytes(target)
        data = self.source.read(self.start_of(name), entry.size)
        self._check(entry, data)
        return data

    def read_into(self, name: str, target: memoryview) -> None:
        """Fill `target`, which has the record's size."""
        entry = self.entries[name]
        if entry.method == _DEFLATED:
            self._inflate(entry, target)
            return
        self.source.read_into(self.start_of(name), target)
        self._check(entry, target)

    def pay(self, entry: Entry) -> None:
        """Take the size of a record from the allowance."""
        if entry.method == _DEFLATED and entry.size > self.allowance.left:
            raise _damaged(
                f"{short(entry.name)} is compressed and claims {entry.size} bytes, "
                f"more than the {self.allowance.left} that are left for this file"
            )
        self.allowance.spend(entry.size)

    def _inflate(self, entry: Entry, target: memoryview) -> None:
        inflater, start, done = zlib.decompressobj(-15), self.start_of(entry.name), 0
        try:
            for at in range(0, entry.compressed, _BLOCK):
                count = min(_BLOCK, entry.compressed - at)
                packed = self.source.read(start + at, count)
                while packed and not inflater.eof:
                    part = inflater.decompress(packed, _BLOCK)
                    if done + len(part) > entry.size:
                        raise _wrong_size(entry)
                    target[done : done + len(part)] = part
                    done += len(part)
                    packed = inflater.unconsumed_tail
        except zlib.error as error:
            raise _damaged(f"{short(entry.name)}: {error}") from None
        if done != entry.size or not inflater.eof:
            raise _wrong_size(entry)
        self._check(entry, target)

    def _check(self, entry: Entry, data) -> None:
        if not self.checked or entry.is_space:
            return
        if _crc32(data, 0) != entry.crc:
            raise _damaged(f"wrong checksum (CRC-32) of {short(entry.name)}")


def _widen(entry: Entry, extra: bytes) -> None:
    """Take sizes that do not fit 32 bits from the ZIP64 extra field."""
    names = [n for n in ("size", "compressed", "offset") if getattr(entry, n) == _MAX32]
    at = 0
    while names and at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        at += 4
        if kind == 1:
            if length < 8 * len(names) or at + length > len(extra):
                raise _damaged(f"the ZIP64 field of {short(entry.name)} is short")
            for name in names:
                setattr(entry, name, struct.unpack_from("<Q", extra, at)[0])
                at += 8
            return
        at += length
