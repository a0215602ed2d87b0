"""Files written by a grammar of attacks load or give a documented error, cheaply.

The grammar knows what a checkpoint is made of, and what makes one dear: nesting,
sharing, repetition, copies, colliding hashes, numbers at their ends, lying lengths.
Most of a file is well-formed, so that the machine gets far.
"""

from __future__ import annotations

import json
import pathlib
import random
import struct
import sys
import zipfile

import costs
from harness import main, mutate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "io"))
import forge

LARGEST = 1 << 18  # bytes that a fragment may be repeated to
ENDS = [0, 1, 255, *(2**n for n in (31, 32, 61, 62, 63, 64, 400))]
WIDTHS = {"Float": 4, "Double": 8, "Half": 2, "Long": 8, "Byte": 1, "Bool": 1}
WIDTHS |= {"BFloat16": 2, "Int": 4, "ComplexFloat": 8, "Untyped": 1}
DTYPES = "float32 float64 int64 bool bfloat16 complex64 uint8 float8_e4m3fn x".split()
WORDS = ("a", "b", "conj", "neg", "latin1", "cpu", "0", "__class__", "data", "grad")
LOCATIONS = ("cpu", "cpu", "cpu", "meta", "cuda:0", "cuda:99999999999", "x" * 999, "")
CALLS = (
    ("collections", "OrderedDict"),
    ("collections", "Counter"),
    ("builtins", "set"),
    ("builtins", "complex"),
    ("builtins", "bytearray"),
    ("_codecs", "encode"),
    ("torch", "Size"),
    ("torch", "device"),
    ("torch.serialization", "_get_layout"),
    ("torch.nn.parameter", "Parameter"),
    ("torch._utils", "_rebuild_tensor"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch._utils", "_rebuild_parameter_with_state"),
    ("torch._utils", "_rebuild_sparse_tensor"),
    ("torch._utils", "_rebuild_meta_tensor_no_storage"),
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"),
    ("torch._tensor", "_rebuild_from_type_v2"),
)
FORBIDDEN = (
    ("os", "system"),
    ("builtins", "eval"),
    ("torch", "load"),
    ("a" * 900, "b"),
)


class Program:
    """Bytes of a pickle; each method returns code that pushes one value."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.places = 0  # in the memo
        self.left = 60  # values that may still be written

    def some(self, choices):
        return self.source.choice(choices)

    def chance(self, part: float) -> bool:
        return self.source.random() < part

    def times(self, size: int) -> int:
        """How often a fragment of some bytes is repeated."""
        most = max(1, LARGEST // max(size, 1))
        return min(most, self.some((1, 2, 3, 10, 100, 1000, most)))

    def keep(self, code: bytes) -> tuple[bytes, bytes]:
        """(code that also remembers its value, code that pushes it again)."""
        place = self.places
        self.places += 1
        index = struct.pack("<I", place)
        return code + b"r" + index, b"j" + index

    def number(self) -> int:
        if self.chance(0.6):
            return self.source.randint(0, 6)
        value = self.some(ENDS) + self.source.randint(-1, 1)
        return -value if self.chance(0.2) else value

    def integer(self) -> bytes:
        kind = self.source.randrange(8)
        if kind == 0:
            return b"J" + struct.pack("<i", self.source.randint(-(2**31), 2**31 - 1))
        if kind == 1:
            size = self.some((0, 1, 8, 300, 1024, 1025, 70_000))
            return b"\x8b" + struct.pack("<i", size) + b"\x7f" * size
        if kind < 4:
            return b"K" + bytes([self.source.randrange(256)])
        return forge.integer(self.number())

    def text(self) -> bytes:
        kind = self.source.randrange(6)
        if kind == 0:
            return forge.text(self.some(("x", "\u00e9", "\U0001f600")) * self.times(4))
        if kind == 1:
            return b"C" + bytes([3]) + b"abc"
        if kind == 2:
            return b"U\2\xff\xfe"
        return forge.text(self.some(WORDS))

    def atom(self) -> bytes:
        return self.some(
            (
                self.integer,
                self.integer,
                self.text,
                lambda: self.some((b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f")),
                lambda: (
                    b"G"
                    + struct.pack(">d", self.some((0.0, -1.5, 1e308, float("nan"))))
                ),
                lambda: forge.name("torch", self.some(DTYPES)),
            )
        )()

    def value(self) -> bytes:
        """Anything."""
        self.left -= 1
        if self.left < 0 or self.chance(0.25):
            return self.atom()
        return self.some(
            (
                self.sequence,
                self.mapping,
                self.tensor,
                self.tensor,
                self.call,
                self.call,
                self.nested,
                self.doubled,
                self.repeated,
                self.copies,
                self.state,
                self.stranger,
            )
        )()

    def sequence(self) -> bytes:
        body = b"".join(self.value() for _ in range(self.source.randrange(4)))
        if self.chance(0.5):
            return b"(" + body + b"t"
        return b"](" + body + b"e" if self.chance(0.7) else b"\x8f(" + body + b"\x90"

    def mapping(self) -> bytes:
        new = self.some((b"}", b"}", forge.name("collections", "OrderedDict") + b")R"))
        pairs = b"".join(
            self.key() + self.value() for _ in range(self.source.randrange(4))
        )
        return new + b"(" + pairs + b"u"

    def key(self) -> bytes:
        if self.chance(0.6):
            return self.some((self.text, self.integer))()
        return self.value()

    def nested(self) -> bytes:
        """One value inside of another, many times, perhaps as a key."""
        depth = self.some((5, 17, 200, 3000, 29_000, 31_000, 100_000))
        if self.chance(0.5):
            code = self.atom() + b"\x85" * depth
        else:
            code = b"]" * depth + b"a" * (depth - 1)
        return b"}" + code + b"Ns" if self.chance(0.5) else code

    def doubled(self) -> bytes:
        """Exponentially large, if it were written out."""
        times = self.source.randrange(2, 64)
        if self.chance(0.5):
            code = self.atom() + b"2\x86" * times
        else:
            code, again = self.keep(b"]")
            for _ in range(times):
                outer, next_again = self.keep(b"]")
                code += b"0" + outer + again + b"a" + again + b"a"
                again = next_again
        return self.some((code, b"}" + code + b"Ns", b"\x8f(" + code + b"\x90"))

    def repeated(self) -> bytes:
        """The same code again and again, all of it alive, or as keys."""
        one = self.atom() if self.chance(0.5) else self.value()
        count = self.times(len(one))
        kind = self.source.randrange(3)
        if kind == 0:
            return b"](" + one * count + b"e"
        if kind == 1:
            return b"(" + one * count + b"t"
        # Integers with one hash value, or tuples of them.
        step = self.some((1, 2**61 - 1, 2**32, 2**64))
        keys = [forge.integer(step * i) for i in range(min(count, 20_000))]
        if self.chance(0.3):
            keys = [b"\x85".join((key, b"")) for key in keys]
        return b"}(" + b"".join(key + b"N" for key in keys) + b"u"

    def copies(self) -> bytes:
        """One call with one large argument, many times."""
        argument, again = self.keep(self.repeated())
        arguments, twice = self.keep(
            again + self.some((b"\x85", self.text() + b"\x86"))
        )
        function, third = self.keep(forge.name(*self.some(CALLS[:7])))
        head = argument + b"0" + arguments + b"0" + function + b"0"
        one = third + twice + b"R"
        return head + b"](" + one * self.times(len(one)) + b"e"

    def storage(self) -> bytes:
        """A persistent identifier."""
        kind, width = self.some(list(WIDTHS.items()))
        module = "torch.storage" if kind == "Untyped" else "torch"
        key, count = "2", 16 // width
        if self.chance(0.1):
            key = self.some(("0", "1", "9", "../version"))
        if self.chance(0.1):
            count = self.number()
        fields = [
            forge.text("storage"),
            forge.name(module, kind + "Storage"),
            forge.text(key),
            forge.text(self.some(LOCATIONS) if self.chance(0.1) else "cpu"),
            forge.integer(count),
        ]
        if self.chance(0.05):
            fields[self.source.randrange(5)] = self.value()
        return b"(" + b"".join(fields) + self.some((b"", b"", b"N")) + b"tQ"

    def shape(self) -> bytes:
        if self.chance(0.05):
            return self.value()
        count = self.some((0, 1, 1, 2, 3, 64, 65)) if self.chance(0.9) else 5000
        return (
            b"(" + b"".join(forge.integer(self.number()) for _ in range(count)) + b"t"
        )

    def tensor(self) -> bytes:
        """A view of a storage, right or wrong."""
        size = self.some((1, 2, 4))
        sound = self.chance(0.5)
        place = [b"K\0", forge.numbers((size,)), forge.numbers((1,))]
        if not sound:
            place = [self.integer(), self.shape(), self.shape()]
        flags = self.some((b"\x89", b"\x88", b"\x89", self.atom()))
        hooks = forge.name("collections", "OrderedDict") + b")R"
        metadata = self.some((b"", b"", b"}" + self.text() + b"\x88s", self.value()))
        if self.chance(0.5):
            return forge.tensor("2", 4, size=(size,))
        if self.chance(0.5):
            name, dtype = "_rebuild_tensor_v2", b""
        else:
            name, dtype = "_rebuild_tensor_v3", forge.name("torch", self.some(DTYPES))
        body = self.storage() + b"".join(place) + flags + hooks + dtype + metadata
        return forge.name("torch._utils", name) + b"(" + body + b"tR"

    def call(self) -> bytes:
        """A function that is allowed, with arguments more or less of its kinds."""
        module, name = self.some(CALLS)
        count = self.some((0, 1, 1, 2, 3, 4))
        body = b"".join(
            self.some((self.tensor, self.value, self.atom, self.shape))()
            for _ in range(count)
        )
        if name == "_rebuild_device_tensor_from_cpu_tensor":
            body = self.tensor() + forge.name("torch", self.some(DTYPES))
            body += forge.text(self.some(LOCATIONS)) + b"\x89"
        elif name == "_rebuild_from_type_v2":
            plain = forge.tensor("2", 4)
            kind = self.some((("torch", "Tensor"), ("torch.nn.parameter", "Parameter")))
            function = forge.name("torch._utils", "_rebuild_tensor_v2")
            inner = plain.split(function, 1)[1][:-1]
            body = function + self.some((inner, self.value())) + forge.name(*kind)
            body += self.some((b"}" + self.text() + self.value() + b"s", self.value()))
        elif name.startswith("_rebuild_parameter"):
            body = self.tensor() + self.some((b"\x88", b"\x89", self.atom())) + b"}"
            body += self.mapping() if name.endswith("state") else b""
        return (
            forge.name(module, name)
            + b"("
            + body
            + b"t"
            + self.some((b"R", b"R", b"\x81"))
        )

    def state(self) -> bytes:
        """BUILD."""
        return (
            self.some((self.value, self.call))()
            + self.some((self.mapping, self.value))()
            + b"b"
        )

    def stranger(self) -> bytes:
        """What no pickler writes: names, operations and lengths."""
        kind = self.source.randrange(6)
        if kind == 0:
            return forge.name(*self.some(FORBIDDEN))
        if kind == 1:
            return self.value() + bytes([self.source.randrange(256)])
        if kind == 2:
            return b"]r" + struct.pack("<I", self.some((1, 5000, 10**6, 2**32 - 1)))
        if kind == 3:
            code = self.some((b"X", b"B", b"T", b"\x8b", b"j", b"r"))
            return code + struct.pack("<I", self.some((5, 2**16, 2**31, 2**32 - 1)))
        if kind == 4:
            return self.some((b"\x8d", b"\x8e", b"\x96", b"\x95")) + struct.pack(
                "<Q", 2**62
            )
        return b"(" * self.times(1) + self.value()


RECORDS = {"0": bytes(16), "1": b"", "2": struct.pack("<4f", 1, 2, 3, 4)}


def container(program: Program, pickled: bytes) -> bytes:
    """The pickle in a file of some form."""
    source = program.source
    kind = source.randrange(8)
    if kind == 0:
        return forge.legacy(pickled)
    records = dict(RECORDS)
    if kind == 1:  # zeros that compress to a thousandth
        for key in range(3, 3 + source.randrange(1, 4)):
            records[str(key)] = bytes(source.choice((1 << 20, 4 << 20)))
        large = [
            forge.tensor(k, len(v) // 4) for k, v in records.items() if len(v) > 99
        ]
        pickled = forge.program(b"](" + b"".join(large) + b"e")
        return forge.archive(pickled, records, zipfile.ZIP_DEFLATED)
    data = forge.archive(pickled, records, program.some((0, 0, 8)))
    if kind == 2:  # a directory that lies
        at = data.rindex(b"PK\1\2") if source.random() < 0.5 else data.index(b"PK\1\2")
        return data[:at] + mutate(data[at:], source)
    return data


def json_value(source: random.Random, depth: int = 0) -> object:
    kind = source.randrange(8)
    if kind == 0 and depth < 5:
        return [json_value(source, depth + 1) for _ in range(source.randrange(4))]
    if kind == 1 and depth < 5:
        return {source.choice("abc"): json_value(source, depth + 1)}
    if kind == 2:
        return [[]] * source.choice((1, 100, 20_000))
    return source.choice((0, -1, 4, 2**62, 10**400, 1.5, None, True, "F32", "x" * 5000))


def header(source: random.Random) -> bytes:
    """A safetensors file."""
    facts, at = {}, 0
    for name in range(source.randrange(4)):
        shape = [
            source.choice((0, 1, 2, 2, 2**61))
            for _ in range(source.choice((0, 1, 2, 70)))
        ]
        size = 4
        for n in shape[:8]:
            size *= n
        size = size if size < 4096 else 8
        each = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        if source.random() < 0.3:
            each[source.choice(list(each))] = json_value(source)
        facts[str(name)], at = each, at + size
    if source.random() < 0.3:
        facts["__metadata__"] = json_value(source)
    text = json.dumps(facts).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


def attempt(source: random.Random) -> bool:
    """Loads one hostile file; True when it was accepted."""
    if source.random() < 0.1:
        return costs.attempt(header(source), source)
    program = Program(source)
    body = b"](" + b"".join(program.value() for _ in range(source.randint(1, 4))) + b"e"
    if source.random() < 0.1:
        body = mutate(body, source)
    return costs.attempt(container(program, forge.program(body)), source)


if __name__ == "__main__":
    sys.exit(main("fuzz_hostile", attempt))
