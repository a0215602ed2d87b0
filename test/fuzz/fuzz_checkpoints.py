"""Damaged checkpoints and safetensors files load or give a documented error.

Damaged are the file, or the pickle inside of a file that is otherwise whole (whose
checksum would refuse it). What loads is read to the last element.
"""

from __future__ import annotations

import io
import pathlib
import pickle
import random
import sys
import zipfile

import taeda
from harness import main, mutate

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "io"))
import forge
from taeda._io import safetensors

DOCUMENTED = (RuntimeError, pickle.UnpicklingError, safetensors.SafetensorError)


def _checkpoint() -> bytes:
    stream = io.BytesIO()
    base = taeda.arange(12.0).reshape(3, 4)
    state = {
        "view": base[1:, ::2],
        "base": base,
        "weight": taeda.nn.Parameter(taeda.ones(2, 3, dtype=taeda.bfloat16)),
        "other": [1, 2.5, "x", {1: (1, 2)}, 2**70, taeda.Size([1, 2])],
    }
    taeda.save(state, stream)
    return stream.getvalue()


CHECKPOINT = _checkpoint()
with zipfile.ZipFile(io.BytesIO(CHECKPOINT)) as _file:
    PICKLE = _file.read("archive/data.pkl")
    RECORDS = {
        name.rpartition("/")[2]: _file.read(name)
        for name in _file.namelist()
        if "/data/" in name
    }
SAFE = safetensors.save({"a": taeda.arange(6.0).reshape(2, 3), "b": taeda.ones(4)})


def _read(value: object) -> None:
    if isinstance(value, taeda.Tensor):
        value.detach().to(taeda.float64).sum().item()
    elif isinstance(value, dict):
        for each in value.values():
            _read(each)


def attempt(source: random.Random) -> bool:
    """Loads one damaged file; True when it was accepted."""
    kind = source.randrange(3)
    try:
        if kind == 0:
            _read(safetensors.load(mutate(SAFE, source)))
        elif kind == 1:
            _read(taeda.load(io.BytesIO(mutate(CHECKPOINT, source))))
        else:
            data = forge.archive(mutate(PICKLE, source), RECORDS)
            _read(taeda.load(io.BytesIO(data)))
    except DOCUMENTED as error:
        if not str(error):
            raise AssertionError(f"an empty message: {error!r}") from error
        return False
    return True


if __name__ == "__main__":
    sys.exit(main("fuzz_checkpoints", attempt))
