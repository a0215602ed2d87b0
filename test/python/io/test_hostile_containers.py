"""Containers made to fill the memory: zip archives and safetensors headers."""

from __future__ import annotations

import io
import pathlib
import struct
import sys
import zipfile
import zlib

import pytest
import taeda
from taeda._io import safetensors

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge
import guard


def framed(header: bytes, data: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def entry(shape: bytes, dtype: bytes = b'"F32"') -> bytes:
    return b'{"a":{"dtype":%s,"shape":%s,"data_offsets":[0,0]}}' % (dtype, shape)


HEADERS = {
    "a list as dtype": (entry(b"[0]", b"[]"), "unknown dtype"),
    "a deep dtype": (entry(b"[0]", b"[" * 900 + b"]" * 900), "unknown dtype"),
    "a product that grows": (
        entry(b"[" + b",".join([b"%d" % 2**61] * 50_000) + b"]"),
        "malformed",
    ),
    "a number of many digits": (entry(b"[" + b"9" * 10**6 + b"]"), "no JSON"),
    "ten million lists": (
        b'{"a":[' + b"[]," * 10_000_000 + b"[]]}",
        "bytes of JSON objects",
    ),
    "a name of a megabyte": (b'{"' + b"n" * 10**6 + b'":3}', "malformed"),
    "a deep header": (b'{"a":' * 100_000, "no JSON"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_safetensors_headers(case) -> None:
    header, text = HEADERS[case]
    data = framed(header)
    guard.assert_refused(data, text, safetensors.load)


def central(name: bytes, offset: int, size: int, crc: int, method=0, packed=None):
    """An entry of a zip file's directory."""
    packed = size if packed is None else packed
    head = struct.pack(
        "<4s6H3I", b"PK\1\2", 20, 20, 0, method, 0, 33, crc, packed, size
    )
    return head + struct.pack("<5H2I", len(name), 0, 0, 0, 0, 0, offset) + name


def local(name: bytes, size: int, crc: int, method=0, packed=None) -> bytes:
    """The header before a record."""
    packed = size if packed is None else packed
    head = struct.pack("<4s5H3I", b"PK\3\4", 20, 0, method, 0, 33, crc, packed, size)
    return head + struct.pack("<2H", len(name), 0) + name


def closed(body: bytes, directory: list[bytes]) -> bytes:
    joined = b"".join(directory)
    count = len(directory)
    end = struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, count, count, *(len(joined), len(body), 0)
    )
    return body + joined + end


BYTES = ("torch", "ByteStorage")


def storages(count: int, elements) -> bytes:
    """A list of tensors over all the records."""
    tensors = (
        forge.tensor(str(i), elements(i), 0, (elements(i),), kind=BYTES)
        for i in range(count)
    )
    return forge.program(b"](" + b"".join(tensors) + b"e")


def overlapping(count: int) -> bytes:
    """Each record contains all later ones: together far more than the file."""
    names = [b"archive/data/%d" % i for i in range(count)]
    body, directory, sizes = bytes(4096), [], {}
    for i in reversed(range(count)):
        sizes[i], crc = len(body), zlib.crc32(body)
        body = local(names[i], len(body), crc) + body
        directory.append((names[i], len(body), sizes[i], crc))
    program = storages(count, sizes.get)
    front = b""
    for name, content in ((b"data.pkl", program), (b"version", b"3\n")):
        front += local(b"archive/" + name, len(content), zlib.crc32(content)) + content
    entries = []
    for name, from_end, size, crc in directory:
        entries.append(central(name, len(front) + len(body) - from_end, size, crc))
    at = 0
    for name, content in ((b"data.pkl", program), (b"version", b"3\n")):
        crc = zlib.crc32(content)
        entries.insert(0, central(b"archive/" + name, at, len(content), crc))
        at += len(local(b"archive/" + name, 0, 0)) + len(content)
    return closed(front + body, entries)


def bombs(count: int, size: int) -> bytes:
    """Compressed zeros: a thousandth of their size in the file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        program = storages(count, lambda i: size)
        file.writestr("archive/data.pkl", program)
        file.writestr("archive/version", "3\n")
        for i in range(count):
            file.writestr(f"archive/data/{i}", bytes(size))
    return stream.getvalue()


def records(count: int) -> bytes:
    """A directory of very many records."""
    names = [b"archive/%d" % i for i in range(count)]
    one = local(b"archive/version", 2, zlib.crc32(b"3\n")) + b"3\n"
    directory = [central(name, 0, 0, 0) for name in names]
    body, joined = one, b"".join(directory)
    end64 = len(body) + len(joined)
    tail = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(joined), len(body)
    )
    tail += struct.pack("<4sIQI", b"PK\6\7", 0, end64, 1)
    tail += struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, *[0xFFFFFFFF] * 2, 0
    )
    return body + joined + tail


def packed_pickle(body: bytes) -> bytes:
    """A pickle that is a thousand times its file."""
    return forge.archive(forge.program(body), compression=zipfile.ZIP_DEFLATED)


ARCHIVES = {
    "a compressed pickle of idle steps": (
        lambda: packed_pickle(b"N0" * 8_000_000 + b"N"),
        "memory",
    ),
    "overlapping records": (lambda: overlapping(4000), "memory"),
    "compressed zeros": (lambda: bombs(40, 32 << 20), "left for this file|memory"),
    "a million records": (lambda: records(1_000_000), "memory"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(case) -> None:
    make, text = ARCHIVES[case]
    data = make()
    guard.assert_refused(data, text)


def test_a_few_overlapping_records_do_load() -> None:
    """So the archive above is refused for its cost alone."""
    loaded = taeda.load(io.BytesIO(overlapping(3)))
    assert len(loaded) == 3 and loaded[0].numel() > loaded[2].numel() > 0
