"""Checkpoints whose storages are left out, records one by one, views of old files."""

from __future__ import annotations

import io
import pickle

import pytest
import taeda
import torch
from taeda._io.legacy import MAGIC, PROTOCOL
from taeda._subclasses.fake_tensor import FakeTensorConverter, FakeTensorMode
from taeda.serialization import skip_data


def saved(value, load=taeda.load, **options):
    file = io.BytesIO()
    with skip_data(**options):
        taeda.save(value, file)
    file.seek(0)
    return load(file)


@pytest.mark.parametrize("load", [taeda.load, torch.load])
def test_space_is_left_for_storages(load):
    x = taeda.randn(2, 3)
    found = saved({"x": x, "row": x[1], "h": x.half()}, load)
    assert found["x"].tolist() == [[0.0] * 3] * 2 and found["row"].tolist() == [0.0] * 3
    assert found["row"].storage_offset() == 3 and found["h"].itemsize == 2
    shared = [found[name].untyped_storage().data_ptr() for name in ("x", "row")]
    assert shared[0] == shared[1]


def test_space_is_filled_later():
    """Where the records say; other records keep their checksums."""
    x, file = taeda.arange(6.0), io.BytesIO()
    with skip_data():
        taeda.save(x, file)
    file.seek(0)
    place = taeda.PyTorchFileReader(file).get_record_offset("data/0")
    data = bytearray(file.getvalue())
    data[place : place + 24] = x.numpy().tobytes()
    for load in (taeda.load, torch.load):
        assert load(io.BytesIO(data)).tolist() == x.tolist()
    version = bytes(data).index(b"3\n")
    data[version] = ord("4")
    with pytest.raises(RuntimeError, match="wrong checksum"):
        taeda.load(io.BytesIO(data))


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_is_read(zipped):
    x, file = taeda.full((4,), 7.0), io.BytesIO()
    taeda.save([x, x[:2]], file, _use_new_zipfile_serialization=zipped)
    data = file.getvalue()
    at = data.index(x.numpy().tobytes())
    lost = data[:at] + bytes(16) + data[at + 16 :]
    with skip_data():
        whole, part = taeda.load(io.BytesIO(lost))
    assert whole.shape == (4,) and part.data_ptr() == whole.data_ptr()


def test_fake_tensors_become_real_ones():
    with FakeTensorMode() as mode:
        x = taeda.empty(2, 3, device="cpu")
        given = {"x": x, "part": x.view(-1)[2:]}
    real = FakeTensorConverter().from_real_tensor(mode, taeda.ones(2, dtype=taeda.int8))
    found = saved({**given, "real": real}, materialize_fake_tensors=True)
    assert {type(t) for t in found.values()} == {taeda.Tensor}
    assert found["part"].tolist() == [0.0] * 4 and found["real"].dtype == taeda.int8
    assert found["part"].data_ptr() == found["x"].data_ptr() + 8


def test_what_is_not_skipped():
    with pytest.warns(UserWarning, match="meta device under skip_data context manager"):
        assert saved(taeda.empty(2, device="meta")).is_meta
    with skip_data(), pytest.raises(RuntimeError, match="skip_data=True with _use_new"):
        taeda.save(taeda.ones(2), io.BytesIO(), _use_new_zipfile_serialization=False)


def test_records_one_by_one(tmp_path):
    path = str(tmp_path / "notes.zip")
    with taeda.serialization._open_zipfile_writer(path) as writer:
        writer.write_record("a/b", b"12", 2)
        writer.write_record("text", "words", 5)
        writer.write_record("s", taeda.ones(2).untyped_storage(), 8)
        assert writer.get_all_written_records() == ["a/b", "text", "s"]
        assert writer.archive_name() == "notes"
        with pytest.raises(RuntimeError, match="'c' has 1 bytes, not 2"):
            writer.write_record("c", b"1", 2)
    with taeda.serialization._open_zipfile_reader(path) as reader:
        assert reader.get_record("a/b") == b"12"
        assert reader.get_record("text") == b"words"
        assert reader.get_record("s") == taeda.ones(2).numpy().tobytes()
    assert torch._C.PyTorchFileReader(path).get_record("a/b") == b"12"
    with open(path, "rb") as file:
        assert taeda.serialization._is_zipfile(file) and file.tell() == 0


class Old(pickle.Pickler):
    """Writes the views, which slices stand for, of one storage of four floats."""

    def persistent_id(self, view):
        if not isinstance(view, slice):
            return None
        part = (str(view), view.start, view.stop - view.start)
        return ("storage", torch.FloatStorage, "0", "cpu", 4, part)


def old(views) -> io.BytesIO:
    file = io.BytesIO()
    for value in (MAGIC, PROTOCOL, {"little_endian": True}):
        pickle.dump(value, file, 2)
    Old(file, 2).dump(views)
    pickle.dump(["0"], file, 2)
    file.write((4).to_bytes(8, "little") + taeda.arange(4.0).numpy().tobytes())
    file.seek(0)
    return file


def test_views_of_old_files_share_a_storage():
    a, b, again = taeda.load(old([slice(0, 2), slice(1, 4), slice(1, 4)]))
    assert list(a) == [0.0, 1.0] and list(b) == [1.0, 2.0, 3.0]
    assert b.data_ptr() == a.data_ptr() + 4 == again.data_ptr()
    with pytest.raises(pickle.UnpicklingError, match="beyond the end of storage"):
        taeda.load(old([slice(2, 5)]))
