"""Files made to crash, to hang or to fill the memory: a clear error, and cheaply."""

from __future__ import annotations

import pathlib
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge
import guard


def mark(body: bytes) -> bytes:
    """A tuple of what the body pushes."""
    return b"(" + body + b"t"


def get(index: int) -> bytes:
    """LONG_BINGET."""
    return b"j" + struct.pack("<I", index)


def put(index: int) -> bytes:
    """LONG_BINPUT."""
    return b"r" + struct.pack("<I", index)


def call(module: str, name: str, arguments: bytes) -> bytes:
    """REDUCE of a function; `arguments` pushes a tuple."""
    return forge.name(module, name) + arguments + b"R"


ORDERED = call("collections", "OrderedDict", b")")
DOUBLED_TUPLES = b")" + b"2\x86" * 40
DOUBLED_LISTS = b"]" + b"".join(
    put(i) + b"]" + get(i) + b"a" + get(i) + b"a" for i in range(40)
)
MANY = 200_000
LONG_LIST = b"](" + b"N" * MANY + b"e" + put(0)
LONG_TUPLE = b"(" + b"K\1" * MANY + b"t" + put(0)
LONG_TEXT = forge.text("x" * MANY) + put(0)
LONG_DICT = (
    b"}(" + b"".join(forge.integer(i) + b"N" for i in range(MANY)) + b"u" + put(0)
)
HUGE_INTEGER = b"\x8b" + struct.pack("<i", MANY) + b"\x7f" * MANY + put(0)
# Distinct integers and tuples with one hash value.
MERSENNE = 2**61 - 1
SAME_INTEGERS = b"".join(forge.integer(i * MERSENNE) + b"N" for i in range(1, 60_000))


def tuples_with_one_hash(count: int) -> list[tuple]:
    """Pairs (i, j) of integers whose hash is that of (0, 0).

    The hash of a tuple, from CPython's tupleobject.c (after xxHash), can be run
    backwards: for each i there is one j in the integers modulo 2^64.
    """
    p1, p2, p5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
    wide = 2**64

    def turned(value: int) -> int:
        return (value << 31 | value >> 33) % wide

    def step(state: int, lane: int) -> int:
        return turned((state + lane * p2) % wide) * p1 % wide

    inverse = pow(p2, -1, wide)
    goal = (step(p5, 0) + 0 * p2) % wide  # before the last turn, for (0, 0)
    found, i = [], 0
    while len(found) < count:
        i += 1
        lane = (goal - step(p5, i)) * inverse % wide
        lane = lane - wide if lane >= wide // 2 else lane
        if abs(lane) < MERSENNE and lane != -1:
            found.append((i, lane))
    return found


def test_the_tuples_do_collide() -> None:
    assert {hash(pair) for pair in tuples_with_one_hash(100)} == {hash((0, 0))}


def same_tuples() -> bytes:
    return b"".join(
        forge.integer(i) + forge.integer(j) + b"\x86N"
        for i, j in tuples_with_one_hash(30_000)
    )


def many_calls(function: bytes, arguments: bytes, count: int = 60_000) -> bytes:
    """A list of results of one call with arguments that are written once."""
    head = function + put(1) + b"0" + arguments + put(2) + b"0"
    one = get(1) + get(2) + b"R"
    return head + b"](" + one * count + b"e"


def name(module: str, attribute: str) -> bytes:
    return forge.name(module, attribute)


REBUILD = name("torch._utils", "_rebuild_tensor_v2")
STORAGE = (
    forge.text("storage")
    + name("torch", "FloatStorage")
    + forge.text("0")
    + forge.text("cpu")
    + forge.integer(4)
)
STORAGE = mark(STORAGE) + b"Q"
COMMON = b"\x89" + ORDERED


def wide_tensor() -> bytes:
    return mark(STORAGE + b"K\0" + get(0) + get(0) + COMMON)


# name -> (pickle, what the error says)
HOSTILE = {
    "deep tuple as a key": (b"})" + b"\x85" * 3_000_000 + b"Ns", "nested deeper"),
    "tuple as a key, not deep enough to be watched": (
        b"})" + b"\x85" * 20_000 + b"Ns",
        "key",
    ),
    "doubled tuples as a key": (b"}" + DOUBLED_TUPLES + b"Ns", "key"),
    "doubled tuples as keys": (b"}(" + DOUBLED_TUPLES + b"Nu", "key"),
    "doubled tuples in a set": (b"\x8f(" + DOUBLED_TUPLES + b"\x90", "key"),
    "doubled tuples for set": (
        call("builtins", "set", b"](" + DOUBLED_TUPLES + b"e\x85"),
        "key",
    ),
    "doubled tuples for OrderedDict": (
        call("collections", "OrderedDict", b"](" + DOUBLED_TUPLES + b"N\x86e\x85"),
        "key",
    ),
    "doubled tuples for Counter": (
        call("collections", "Counter", b"](" + DOUBLED_TUPLES + b"e\x85"),
        "Counter",
    ),
    "two equal doubled tuples": (
        b"}" + DOUBLED_TUPLES + b"Ns" + DOUBLED_TUPLES + b"Ns",
        "key",
    ),
    "a wide tuple used as a key again and again": (
        b"0".join([LONG_TUPLE, b""]) + b"](" + (b"}" + get(0) + b"Ns") * MANY + b"e",
        "key|memory",
    ),
    "integers with one hash": (b"}(" + SAME_INTEGERS + b"u", "hash|memory"),
    "tuples with one hash": (b"}(" + same_tuples() + b"u", "hash|memory"),
    "tuples with one hash, one by one": (
        b"}" + same_tuples().replace(b"\x86N", b"\x86Ns"),
        "hash|memory",
    ),
    "a huge integer as a key again and again": (
        HUGE_INTEGER + b"0](" + (b"}" + get(0) + b"Ns") * MANY + b"e",
        "integer",
    ),
    "repr of doubled lists": (DOUBLED_LISTS + b")R", "unrecognized function"),
    "repr of doubled lists in an identifier": (DOUBLED_LISTS + b"Q", "id of a storage"),
    "repr of doubled lists as a size": (
        REBUILD + mark(STORAGE + b"K\0" + mark(DOUBLED_LISTS) + b")" + COMMON) + b"R",
        "a size contains",
    ),
    "repr of doubled lists as a layout": (
        DOUBLED_LISTS
        + put(40)
        + call("torch.serialization", "_get_layout", get(40) + b"\x85"),
        "layout",
    ),
    "repr of a huge integer": (HUGE_INTEGER + b"Q", "integer"),
    "copies of a list": (
        LONG_LIST + b"0" + many_calls(name("builtins", "set"), get(0) + b"\x85"),
        "memory",
    ),
    "copies of a dictionary": (
        LONG_DICT + b"0" + many_calls(name("collections", "Counter"), get(0) + b"\x85"),
        "memory",
    ),
    "copies of a text": (
        LONG_TEXT
        + b"0"
        + many_calls(name("_codecs", "encode"), mark(get(0) + forge.text("latin1"))),
        "memory",
    ),
    "copies of a size": (
        LONG_TUPLE + b"0" + many_calls(name("torch", "Size"), get(0) + b"\x85"),
        "memory",
    ),
    "one state for many dictionaries": (
        b"}("
        + b"".join(forge.text(f"a{i}") + b"N" for i in range(20_000))
        + b"u"
        + put(0)
        + b"0"
        + name("collections", "OrderedDict")
        + put(1)
        + b"0]("
        + (get(1) + b")R" + get(0) + b"b") * 20_000
        + b"e",
        "memory",
    ),
    "one state for many tensors": (
        b"}("
        + b"".join(forge.text(f"a{i}") + b"N" for i in range(5_000))
        + b"u"
        + put(0)
        + b"0"
        + mark(STORAGE + b"K\0))" + COMMON)
        + put(3)
        + b"0"
        + many_calls(
            name("torch._tensor", "_rebuild_from_type_v2"),
            mark(REBUILD + name("torch", "Tensor") + get(3) + get(0)),
            20_000,
        ),
        "memory",
    ),
    "a tensor of many dimensions": (
        LONG_TUPLE + b"0" + many_calls(REBUILD, wide_tensor()),
        "64 dimensions",
    ),
    "sizes whose product is a huge integer": (
        b"("
        + forge.integer(2**62) * 100_000
        + b"t"
        + put(0)
        + b"0"
        + REBUILD
        + wide_tensor()
        + b"R",
        "64 dimensions",
    ),
    "a set of the rows of a large view": (
        call(
            "builtins",
            "set",
            REBUILD
            + mark(
                STORAGE
                + b"K\0"
                + forge.numbers((1 << 40, 1))
                + forge.numbers((0, 0))
                + COMMON
            )
            + b"R\x85",
        ),
        "set",
    ),
    "arguments out of the rows of a large view": (
        call(
            "torch._tensor",
            "_rebuild_from_type_v2",
            mark(
                REBUILD
                + name("torch", "Tensor")
                + REBUILD
                + mark(
                    STORAGE
                    + b"K\0"
                    + forge.numbers((1 << 40, 1))
                    + forge.numbers((0, 0))
                    + COMMON
                )
                + b"R}",
            ),
        ),
        "arguments",
    ),
    "a large view converted": (
        call(
            "torch._utils",
            "_rebuild_device_tensor_from_cpu_tensor",
            mark(
                REBUILD
                + mark(
                    STORAGE
                    + b"K\0"
                    + forge.numbers((1 << 36,))
                    + forge.numbers((0,))
                    + COMMON
                )
                + b"R"
                + name("torch", "float64")
                + forge.text("cpu")
                + b"\x89"
            ),
        ),
        "memory|bytes",
    ),
    "ten million sets": (b"](" + b"\x8f" * 10_000_000 + b"e", "memory"),
    "a memo with gaps": (b"]" + put(2**32 - 1), "memory|memo"),
    "an undefined entry of the memo": (b"]" + put(3) + get(1), "nothing is remembered"),
    "a name of a megabyte": (
        forge.text("m" * 10**6) + forge.text("n" * 10**6) + b"\x93",
        "Unsupported global",
    ),
    "a location of a megabyte": (
        mark(
            forge.text("storage")
            + name("torch", "FloatStorage")
            + forge.text("0")
            + forge.text("x" * 10**6)
            + forge.integer(4)
        )
        + b"Q",
        "location of a storage is too long",
    ),
    "a dictionary with keys of a dictionary": (
        ORDERED + b"}K\1Nsb",
        "names",
    ),
    "a submodule by name": (name("torch", "distributed"), "Unsupported global"),
}


@pytest.mark.parametrize("form", ["zip", "legacy"])
@pytest.mark.parametrize("case", HOSTILE)
def test_refused(case, form) -> None:
    pickled, text = HOSTILE[case]
    make = forge.archive if form == "zip" else forge.legacy
    data = make(forge.program(pickled))
    guard.assert_refused(data, text)
