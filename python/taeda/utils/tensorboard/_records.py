"""TFRecord files: a message's length, its bytes, and a checksum of each."""

from __future__ import annotations

import struct
from typing import BinaryIO

# CRC-32C (Castagnoli), reflected, as in RFC 3720, appendix B.4.
_POLYNOMIAL = 0x82F63B78
# What TFRecord adds to a checksum, so that data holding checksums are checked well.
_MASK_DELTA = 0xA282EAD8


def _table() -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        rows.append(byte)
    return tuple(rows)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[crc & 0xFF ^ byte]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum as TFRecord stores it: rotated right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


class RecordWriter:
    """Appends records to an open binary file, which stays the caller's.

    >>> import io
    >>> file = io.BytesIO()
    >>> RecordWriter(file).write(b"abc")
    >>> len(file.getvalue())
    19
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Write one record of any length."""
        head = struct.pack("<Q", len(data))
        tail = struct.pack("<I", masked_crc32c(data))
        self._file.write(head + struct.pack("<I", masked_crc32c(head)) + data + tail)
