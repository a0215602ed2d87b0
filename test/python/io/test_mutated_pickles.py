"""Thousands of damaged pickles: each loads or gives a clear error, and quickly."""

from __future__ import annotations

import io
import pathlib
import random
import sys
import zipfile

import taeda

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge

COUNT = 4000


def damaged(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, way = rng.randrange(len(changed)), rng.random()
        if way < 0.5:
            changed[place] = rng.randrange(256)
        elif way < 0.7:
            changed[place] ^= 1 << rng.randrange(8)
        elif way < 0.85:
            del changed[place : place + rng.randrange(1, 8)]
        else:
            changed[place:place] = rng.randbytes(rng.randrange(1, 8))
    return bytes(changed)


def test_mutations() -> None:
    stream = io.BytesIO()
    state = {
        "a": taeda.arange(4.0),
        "p": taeda.nn.Parameter(taeda.ones(2, 3)),
        "n": [1, 2.5, "x", {1: 2}, (1, 2), {3}, 2**70, b"y"],
        "size": taeda.Size([1, 2]),
        "device": taeda.device("cpu"),
    }
    taeda.save(state, stream)
    with zipfile.ZipFile(stream) as file:
        pickled = file.read("archive/data.pkl")
        records = {str(i): file.read(f"archive/data/{i}") for i in range(2)}
    rng = random.Random(1)
    refused = loaded = 0
    for _ in range(COUNT):
        data = forge.archive(damaged(pickled, rng), records)
        try:
            taeda.load(io.BytesIO(data))
            loaded += 1
        except Exception as error:
            assert type(error).__name__ in ("UnpicklingError", "RuntimeError"), error
            assert str(error)
            refused += 1
    assert loaded + refused == COUNT
    assert refused > COUNT // 2
