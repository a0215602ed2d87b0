"""Damaged checkpoints and safetensors files load or give a documented error, cheaply.

Damaged are the file, or the pickle inside of a file that is otherwise whole (whose
checksum would refuse it). What loads is read to the last element.
"""

from __future__ import annotations

import io
import pathlib
import random
import sys
import zipfile
from collections import Counter, OrderedDict

import costs
import taeda
from harness import main, mutate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "io"))
import forge
from taeda._io import safetensors


def _state() -> dict:
    base = taeda.arange(12.0).reshape(3, 4)
    noted = taeda.ones(2)
    noted.note = {"a": [1]}
    return {
        "view": base[1:, ::2],
        "base": base,
        "weight": taeda.nn.Parameter(taeda.ones(2, 3, dtype=taeda.bfloat16)),
        "eight": taeda.ones(2).to(taeda.float8_e5m2),
        "noted": noted,
        "other": [1, 2.5, "x", {1: (1, 2)}, 2**70, taeda.Size([1, 2]), {3, "a"}],
        "bytes": [b"\xff\0", bytearray(b"ab"), 1j, Counter("aab")],
        ("a", 1): OrderedDict(b=taeda.float16, a=taeda.device("cpu")),
    }


def _trained() -> dict:
    model = taeda.nn.Linear(2, 3)
    optimizer = taeda.optim.Adam(model.parameters())
    model(taeda.ones(1, 2)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def _saved(value: object, zipped: bool = True) -> bytes:
    stream = io.BytesIO()
    taeda.save(value, stream, _use_new_zipfile_serialization=zipped)
    return stream.getvalue()


def _parts(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """A checkpoint's pickle and its storages."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        names = [name for name in file.namelist() if "/data/" in name]
        records = {name.rpartition("/")[2]: file.read(name) for name in names}
        return file.read("archive/data.pkl"), records


VALUES = [_state(), _trained()]
ZIPPED = [_saved(value) for value in VALUES]
PARTS = [_parts(data) for data in ZIPPED]
PACKED = [forge.archive(*parts, zipfile.ZIP_DEFLATED) for parts in PARTS]
OLD = [_saved(value, zipped=False) for value in VALUES]
SAFE = safetensors.save({"a": taeda.arange(6.0).reshape(2, 3), "b": taeda.ones(4)})


def attempt(source: random.Random) -> bool:
    """Loads one damaged file; True when it was accepted."""
    kind = source.randrange(6)
    if kind == 0:
        data = mutate(SAFE, source)
    elif kind == 1:
        data = mutate(source.choice(ZIPPED), source)
    elif kind == 2:
        data = mutate(source.choice(PACKED), source)
    elif kind == 3:
        data = mutate(source.choice(OLD), source)
    else:
        pickled, records = source.choice(PARTS)
        data = forge.archive(mutate(pickled, source), records)
    return costs.attempt(data, source)


if __name__ == "__main__":
    sys.exit(main("fuzz_checkpoints", attempt))
