"""Files that lie in one field each: what is wrong is named."""

from __future__ import annotations

import io
import os
import pathlib
import pickle
import struct
import sys
import warnings
import zipfile
from collections import OrderedDict

import pytest
import taeda
from taeda._io.source import Source

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge

END, LOCATOR, END64 = -22, -42, -98  # where `taeda.save` puts them, from the end


def saved() -> bytearray:
    stream = io.BytesIO()
    taeda.save({"x": taeda.ones(2)}, stream)
    return bytearray(stream.getvalue())


def number(data: bytearray, at: int, form: str, change) -> None:
    """Replaces the number at a place by what `change` makes of it."""
    at %= len(data)
    (value,) = struct.unpack_from(form, data, at)
    struct.pack_into(form, data, at, change(value))


def central(data: bytearray) -> int:
    """Where the directory begins."""
    if data[END64:][:4] == b"PK\6\6":
        return struct.unpack_from("<Q", data, len(data) + END64 + 48)[0]
    return struct.unpack_from("<I", data, len(data) + END + 16)[0]


def counts(change) -> callable:
    def damage(data: bytearray) -> None:
        for at in (END64 + 24, END64 + 32):
            number(data, at, "<Q", change)
        for at in (END + 8, END + 10):
            number(data, at, "<H", lambda n: min(change(n), 0xFFFF))

    return damage


def starts(data: bytearray) -> None:
    number(data, END64 + 48, "<Q", lambda n: n + 1)
    number(data, END + 16, "<I", lambda n: n + 1)


def field(offset: int, form: str, change) -> callable:
    """Changes a field of the first entry of the directory."""
    return lambda data: number(data, central(data) + offset, form, change)


def local(offset: int, form: str, change) -> callable:
    """Changes a field of the first record's own header."""
    return lambda data: number(data, offset, form, change)


DAMAGES = {
    "end": (lambda d: d.extend(b"x"), "bytes after the end of central directory"),
    "disk": (local(END + 4, "<H", lambda n: 1), "to span several disks"),
    "disk of 64": (local(END64 + 16, "<I", lambda n: 1), "to span several disks"),
    "no 64": (local(END64, "<I", lambda n: 0), "no ZIP64 end of central directory"),
    "nowhere": (local(LOCATOR + 8, "<Q", lambda n: n + 99), "points nowhere"),
    "two": (local(END + 12, "<I", lambda n: n + 1), "its two directories disagree"),
    "place": (starts, "the central directory is not where it should be"),
    "signature": (field(0, "<I", lambda n: 0), "a wrong signature in the central"),
    "short": (counts(lambda n: n + 1), "a short central directory"),
    "long": (counts(lambda n: n - 1), "bytes after the last record"),
    "many": (counts(lambda n: 10**9), "1000000000 records"),
    "name size": (field(28, "<H", lambda n: 60000), "outside the central directory"),
    "no UTF-8": (field(46, "<B", lambda n: 0xFF), "a record name that is no UTF-8"),
    "encrypted": (field(8, "<H", lambda n: n | 1), "is encrypted"),
    "method": (field(10, "<H", lambda n: 99), "uses compression 99"),
    "sizes": (field(24, "<I", lambda n: n + 1), "has two sizes"),
    "offset": (field(42, "<I", lambda n: 1 << 30), "ends outside the file"),
    "extra": (local(28, "<H", lambda n: 0xFFFF), "ends outside the file"),
    "header": (local(4 + 4, "<H", lambda n: 8), "and its entry differ"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_directory(name) -> None:
    damage, text = DAMAGES[name]
    data = saved()
    damage(data)
    with pytest.raises(RuntimeError, match=f"truncated or damaged: .*{text}"):
        taeda.load(io.BytesIO(data))


def packed(**records: bytes) -> bytearray:
    """A compressed archive; `version` comes first, so that it is read first."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for record, content in {"version": b"3\n" * 40, **records}.items():
            file.writestr(f"archive/{record}", content)
    return bytearray(stream.getvalue())


def both_sizes(data: bytearray) -> None:
    field(24, "<I", lambda n: n + 1)(data)
    local(22, "<I", lambda n: n + 1)(data)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (field(24, "<I", lambda n: 1 << 30), "claims 1073741824 bytes, more than"),
        (both_sizes, "does not unpack to its size"),
        (local(30 + len("archive/version"), "<B", lambda n: 0xFF), "invalid block"),
        (field(42, "<I", lambda n: len(packed()) - 10), "bytes at "),
    ],
    ids=["bomb", "size", "stream", "place"],
)
def test_a_damaged_compressed_record(damage, text) -> None:
    data = packed()
    damage(data)
    with pytest.raises(RuntimeError, match=text):
        taeda.load(io.BytesIO(data))


def test_a_short_zip64_field_and_a_name_twice() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        info = zipfile.ZipInfo("archive/version")
        info.extra = struct.pack("<2HI", 1, 4, 0)
        file.writestr(info, b"3\n")
    data = bytearray(stream.getvalue())
    field(24, "<I", lambda n: 0xFFFFFFFF)(data)
    with pytest.raises(RuntimeError, match="ZIP64 field of 'archive/version' is short"):
        taeda.load(io.BytesIO(data))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            file.writestr("archive/version", b"3\n")
    with pytest.raises(RuntimeError, match="two records named 'archive/version'"):
        taeda.load(io.BytesIO(stream.getvalue()))


def checkpoint(**records: bytes) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for record, content in records.items():
            file.writestr(f"archive/{record}", content)
    return io.BytesIO(stream.getvalue())


NONE = pickle.dumps(None, 2)


@pytest.mark.parametrize(
    ("records", "kind", "text"),
    [
        (
            {"constants.pkl": b"", "version": b"3"},
            RuntimeError,
            "a TorchScript archive",
        ),
        ({"data.pkl": NONE}, RuntimeError, "has no record 'version'"),
        ({"data.pkl": NONE, "version": b"x"}, RuntimeError, "version is b'x'"),
        (
            {"data.pkl": NONE, "version": b"99"},
            RuntimeError,
            "version 99 of the format",
        ),
        ({"version": b"3"}, RuntimeError, "has no record 'data.pkl'"),
        (
            {"data.pkl": NONE, "version": b"3", "byteorder": b"up"},
            ValueError,
            "Unknown endianness type: 'up'",
        ),
    ],
)
def test_records_that_miss_or_lie(records, kind, text) -> None:
    with pytest.raises(kind, match=text):
        taeda.load(checkpoint(**records))


def test_a_storage_of_two_sizes_and_a_state_of_a_dictionary() -> None:
    both = b"(" + forge.tensor(count=4) + forge.tensor(count=40, size=(40,)) + b"t"
    state = forge.name("collections", "OrderedDict") + b")R" + forge.integer(1) + b"b"
    for body, text in ((both, "two sizes"), (state, "state of a dictionary")):
        with pytest.raises(pickle.UnpicklingError, match=text):
            taeda.load(io.BytesIO(forge.archive(forge.program(body))))


SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
HEAD = (0x1950A86A20F9469CFC6C, 1001, SYSTEM)
COUNT = forge.integer(4)
VIEWED = forge.tensor().replace(COUNT + b"tQ", COUNT + forge.numbers((0, 1)) + b"tQ")


def old(*values, tensor: bytes = forge.tensor(), keys=("0",), rest: bytes = b""):
    """A file of the old format; `rest` is the storages."""
    head = [pickle.dumps(v, 2) for v in (*values, *HEAD[len(values) :])]
    keys = list(keys) if isinstance(keys, tuple) else keys
    return b"".join([*head, forge.program(tensor), pickle.dumps(keys, 2), rest])


FOUR = struct.pack("<q4f", 4, 1, 2, 3, 4)


def test_the_old_file_itself_is_sound() -> None:
    assert taeda.load(io.BytesIO(old(rest=FOUR))).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (old(HEAD[0], 5, rest=FOUR), "Invalid protocol version: 5"),
        (old(keys=OrderedDict(), rest=FOUR), "expected the list of storages"),
        (old(keys=(7,), rest=FOUR), "the key of a storage is 7"),
        (old(keys=("1",), rest=FOUR), "no tensor uses storage '1'"),
        (old(rest=FOUR[:-1]), "storage '0' has 4 elements, expected 4"),
        (old(rest=struct.pack("<q", 9) + FOUR), "has 9 elements, expected 4"),
        (old(keys=()), "storages are missing"),
        (old(tensor=forge.tensor(count=10**6)), "of 4000000 bytes, "),
    ],
)
def test_old_files_that_lie(data, text) -> None:
    with pytest.raises(pickle.UnpicklingError, match=text):
        taeda.load(io.BytesIO(data))


def test_views_of_storages_in_old_files() -> None:
    with pytest.raises(pickle.UnpicklingError, match="a view of a storage is"):
        taeda.load(io.BytesIO(old(tensor=VIEWED, rest=FOUR)))


def test_old_files_go_to_other_devices() -> None:
    moved = taeda.load(io.BytesIO(old(rest=FOUR)), map_location="meta")
    assert moved.is_meta and moved.shape == (4,)


class Short(io.BytesIO):
    """Gives one byte less than it has."""

    def readinto(self, target) -> int:
        return super().readinto(memoryview(target)[:-1])


def test_files_that_shrink(tmp_path) -> None:
    with pytest.raises(RuntimeError, match=r"expected \d+ bytes, read \d+"):
        taeda.load(Short(bytes(saved())))
    path = tmp_path / "large"
    path.write_bytes(b"x" * (2 << 20))
    with Source(path) as source:
        with pytest.raises(RuntimeError, match="9 bytes at 2097150 of 2097152"):
            source.read((2 << 20) - 2, 9)
        with pytest.raises(RuntimeError, match="9 bytes at 2097150 of 2097152"):
            source.read_into((2 << 20) - 2, memoryview(bytearray(9)))
        os.truncate(path, 1 << 20)
        with pytest.raises(RuntimeError, match="became shorter while it was read"):
            source.read(1 << 20, 9)
