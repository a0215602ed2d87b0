"""Checkpoint files made by hand."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict


def text(value: str) -> bytes:
    """BINUNICODE."""
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    """GLOBAL."""
    return f"c{module}\n{attribute}\n".encode()


def integer(value: int) -> bytes:
    """LONG1."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def numbers(values) -> bytes:
    """A tuple of integers."""
    return b"(" + b"".join(map(integer, values)) + b"t"


def tensor(
    key: str = "0",
    count: int = 4,
    offset: int = 0,
    size=(4,),
    stride=(1,),
    kind=("torch", "FloatStorage"),
) -> bytes:
    """A float32 tensor over record data/<key>, as PyTorch writes it."""
    storage = text("storage") + name(*kind) + text(key) + text("cpu") + integer(count)
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + b"("
        + storage
        + b"tQ"
        + integer(offset)
        + numbers(size)
        + numbers(stride)
        + b"\x89"
        + name("collections", "OrderedDict")
        + b")R"
        + b"tR"
    )


def program(body: bytes) -> bytes:
    """A pickle of protocol 2."""
    return b"\x80\x02" + body + b"."


def archive(data: bytes | None, records=None, compression=zipfile.ZIP_STORED) -> bytes:
    """A zip checkpoint around a pickle."""
    stream = io.BytesIO()
    entries = {"byteorder": b"little", "version": b"3\n"}
    entries |= {f"data/{k}": v for k, v in (records or {"0": b"\0" * 16}).items()}
    with zipfile.ZipFile(stream, "w", compression) as file:
        if data is not None:
            file.writestr("archive/data.pkl", data)
        for record, content in entries.items():
            file.writestr(f"archive/{record}", content)
    return stream.getvalue()


def legacy(data: bytes) -> bytes:
    """A checkpoint of the old format around a pickle."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    head = [0x1950A86A20F9469CFC6C, 1001, system]
    parts = [pickle.dumps(value, 2) for value in head]
    return b"".join([*parts, data, pickle.dumps([], 2)])


__all__ = [
    "OrderedDict",
    "archive",
    "integer",
    "legacy",
    "name",
    "numbers",
    "program",
    "tensor",
    "text",
]
