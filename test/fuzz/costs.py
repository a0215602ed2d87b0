"""Loads one hostile file, and holds it to what a load may cost.

Processor time: 2 s. Memory at the peak: three times the file and a floor, which is
made small for some inputs, so that small files reach it. The sanitizer's own memory
hides that of the load, so there it is not measured.
"""

from __future__ import annotations

import io
import os
import pathlib
import random
import sys
import tempfile

import taeda

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "io"))
import guard
from taeda._io import limits, safetensors

FLOORS = (2 << 20, 8 << 20, limits.FLOOR)
SLACK = 6 << 20  # of the allocator, in pages and arenas
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
DOCUMENTED = {
    "UnpicklingError",
    "RuntimeError",
    "NotImplementedError",
    "SafetensorError",
    "EOFError",
    "RecursionError",
}
FOLDER = tempfile.mkdtemp(prefix="taeda-fuzz-")


def read(value: object, most: int = 2000) -> None:
    """Looks at every element of what was loaded, as far as that is quick."""
    waiting, seen = [value], 0
    while waiting and seen < most:
        each, seen = waiting.pop(), seen + 1
        if isinstance(each, taeda.Tensor):
            if each.device.type == "cpu" and each.numel() < 100_000:
                each.detach().to(taeda.complex128).sum().item()
            waiting += list(vars(each).values())[:20]
        elif isinstance(each, dict):
            waiting += [x for pair in list(each.items())[:200] for x in pair]
        elif isinstance(each, (list, tuple, set)):
            waiting += list(each)[:200]


def load_somehow(data: bytes, source: random.Random) -> object:
    """As a program may: from memory, from a path, mapped; safetensors too."""
    if data[:2] != b"PK" and data[8:9] == b"{":
        return safetensors.load(data)
    way = source.randrange(6)
    if way > 1:
        return taeda.load(io.BytesIO(data))
    path = pathlib.Path(FOLDER, f"{os.getpid()}.pt")
    path.write_bytes(data)
    try:
        mapped = way == 1 and data[:4] == b"PK\3\4"
        return taeda.load(path, mmap=mapped)
    finally:
        path.unlink()


def attempt(data: bytes, source: random.Random) -> bool:
    """Loads it; True when it was accepted.

    Raises:
        AssertionError: another error than the documented ones, or too dear.
    """
    floor, way = source.choice(FLOORS), source.random()
    loaded: list = []

    def load() -> str:
        loaded[:] = [load_somehow(data, random.Random(way))]
        return ""

    limits.FLOOR = floor
    try:
        outcome = guard.quickest(lambda: guard.measured(load))
    finally:
        limits.FLOOR = FLOORS[-1]
    accepted = outcome.kind == "result"
    if not accepted:
        known = outcome.kind in DOCUMENTED or "Unknown endianness" in outcome.text
        assert known, outcome
        assert 0 < len(outcome.text) < 1500, outcome
    assert outcome.seconds < guard.SECONDS, (outcome, len(data))
    bound = 3 * len(data) + floor + SLACK
    assert SANITIZED or outcome.growth < bound, (outcome, len(data), floor)
    if accepted:
        try:
            read(loaded.pop())
        except RuntimeError as error:  # an operator that knows no such dtype or device
            assert "INTERNAL" not in str(error), error
    return accepted
