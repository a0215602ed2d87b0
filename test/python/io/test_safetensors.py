"""Safetensors files."""

from __future__ import annotations

import json

import pytest
import taeda
from taeda.utils.safetensors import load, load_file, safe_open, save, save_file


def tensors() -> dict:
    return {
        "weight": taeda.arange(12.0).reshape(3, 4),
        "count": taeda.tensor(7),
        "half": taeda.ones(3, dtype=taeda.bfloat16),
        "flag": taeda.tensor([True, False, True]),
        "empty": taeda.zeros(0, 2),
        "na\u00efve": taeda.ones(2, dtype=taeda.float64),
    }


def facts(values: dict) -> dict:
    return {k: (str(v.dtype), tuple(v.shape), v.tolist()) for k, v in values.items()}


def test_round_trip(tmp_path) -> None:
    path = tmp_path / "x.safetensors"
    save_file(tensors(), path, {"format": "pt"})
    assert facts(load_file(path)) == facts(tensors())
    assert facts(load(save(tensors()))) == facts(tensors())
    with safe_open(path) as file:
        assert file.keys() == sorted(tensors())
        assert file.metadata() == {"format": "pt"}
        part = file.get_slice("weight")
        assert part.get_shape() == [3, 4]
        assert part.get_dtype() == "F32"
        assert part[1:3].tolist() == tensors()["weight"][1:3].tolist()
        assert part[0:2, 1].tolist() == tensors()["weight"][0:2, 1].tolist()
        assert part[::2].tolist() == tensors()["weight"][::2].tolist()
        with pytest.raises(RuntimeError, match="missing"):
            file.get_tensor("missing")


def test_other_writers_and_readers(tmp_path) -> None:
    import safetensors.torch as other
    import torch

    path = tmp_path / "x.safetensors"
    save_file(tensors(), path)
    theirs = other.load_file(path)
    assert {k: v.tolist() for k, v in theirs.items()} == {
        k: v.tolist() for k, v in tensors().items()
    }
    other.save_file({"a": torch.arange(6).reshape(2, 3)}, path, {"k": "v"})
    assert load_file(path)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_data_is_aligned() -> None:
    data = save(tensors())
    length = int.from_bytes(data[:8], "little")
    assert (8 + length) % 8 == 0
    header = json.loads(data[8 : 8 + length])
    for name, tensor in tensors().items():
        assert header[name]["data_offsets"][0] % tensor.dtype.itemsize == 0


base = taeda.ones(4)
REFUSED = [
    ({"a": base, "b": base[1:]}, RuntimeError, "share memory"),
    ({"a": taeda.ones(2, 3).t()}, ValueError, "not contiguous"),
    ({"a": [1.0]}, ValueError, "expected a tensor"),
    ({1: base}, ValueError, "name of a tensor"),
    ([base], ValueError, "dict of tensors"),
    ({"a": taeda.ones(1, dtype=taeda.complex128)}, RuntimeError, "complex128"),
]


@pytest.mark.parametrize(("value", "kind", "text"), REFUSED)
def test_what_the_format_cannot_hold(tmp_path, value, kind, text) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(kind, match=text):
        save_file(value, path)
    assert not path.exists()


def test_metadata_must_be_text() -> None:
    with pytest.raises(ValueError, match="strings"):
        save({"a": base}, {"epoch": 3})


def entry(**changes) -> dict:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


DAMAGED = {
    "gap": {"a": entry(data_offsets=[4, 12])},
    "overlap": {"a": entry(), "b": entry()},
    "size": {"a": entry(shape=[3])},
    "outside": {"a": entry(data_offsets=[0, 1 << 40], shape=[1 << 38])},
    "negative": {"a": entry(data_offsets=[-8, 0])},
    "overflow": {"a": entry(shape=[1 << 40, 1 << 40])},
    "dtype": {"a": entry(dtype="F99")},
    "shape": {"a": entry(shape="2")},
    "float shape": {"a": entry(shape=[2.0])},
    "fields": {"a": {**entry(), "more": 1}},
    "entry": {"a": 3},
    "metadata": {"__metadata__": 3, "a": entry()},
}


def framed(text: bytes, data: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_headers_are_refused(name) -> None:
    with pytest.raises(RuntimeError):
        load(framed(json.dumps(DAMAGED[name]).encode(), bytes(8)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 16,
        framed(b"[]", b""),
        framed(b'{"a"', b""),
        framed(b"[" * 100_000, b""),
        framed(b'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', bytes(8)),
        framed(b'{"__metadata__":{},"__metadata__":{}}', b""),
        framed(b"\xff\xfe", b""),
    ],
)
def test_other_files_are_refused(data) -> None:
    with pytest.raises(RuntimeError):
        load(data)
