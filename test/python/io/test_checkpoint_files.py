"""Saving and loading: both ways with PyTorch, and everything that may go wrong."""

from __future__ import annotations

import errno
import importlib
import io
import os
import pathlib
import pickle
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter, OrderedDict

import pytest
import taeda

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge

DTYPES = (
    "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool complex64 "
    "complex128 uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
).split()


def values(lib) -> dict:
    grid = lib.arange(24.0).reshape(4, 6)
    parameter = lib.nn.Parameter(lib.ones(2, 3))
    return {
        "turned": grid.t(),
        "part": grid[1:3, ::2],
        "expanded": grid[0].expand(3, 6),
        "whole": grid,
        "zero d": lib.tensor(2.5),
        "empty": lib.zeros(0, 3),
        "parameter": parameter,
        "same": parameter,
        "leaf": lib.ones(2, requires_grad=True),
        "nested": [1, -2, 2**80, 1.5, True, None, "\u00e9\u4e2d", (), (1, lib.ones(1))],
        "bytes": b"\x00\xff",
        "set": {1, 2},
        "complex": 1 + 2j,
        "ordered": OrderedDict(b=1, a=lib.zeros(1)),
        "counted": Counter("aab"),
        "size": lib.Size([2, 3]),
        "dtype": lib.float16,
        "device": lib.device("cpu"),
        7: "seven",
    }


def plain(value):
    """Tensors to their facts, containers to comparable ones."""
    if hasattr(value, "stride") and hasattr(value, "tolist"):
        kind = type(value).__name__
        geometry = tuple(value.shape), tuple(value.stride()), value.storage_offset()
        data = value.detach().tolist()
        return kind, str(value.dtype)[6:], geometry, value.requires_grad, data
    if isinstance(value, dict):
        return type(value).__name__, [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return str(value).replace("taeda.", "torch.")


@pytest.fixture
def path(tmp_path) -> pathlib.Path:
    return tmp_path / "file.pt"


def write(path, data: bytes):
    path.write_bytes(data)
    return path


def test_round_trip(path) -> None:
    taeda.save(values(taeda), path)
    loaded = taeda.load(path)
    assert plain(loaded) == plain(values(taeda))
    assert loaded["parameter"] is loaded["same"]


def test_pytorch_reads_ours_and_we_read_its(path) -> None:
    import torch

    want = plain(values(torch))
    taeda.save(values(taeda), path)
    assert plain(torch.load(path, weights_only=True)) == want
    torch.save(values(torch), path)
    assert plain(taeda.load(path)) == want
    assert plain(taeda.load(path, weights_only=False)) == want


def test_the_old_format_both_ways(path) -> None:
    import torch

    old = {"_use_new_zipfile_serialization": False}
    want = plain(values(torch))
    torch.save(values(torch), path, **old)
    assert plain(taeda.load(path)) == want
    taeda.save(values(taeda), path, **old)
    assert plain(torch.load(path, weights_only=True)) == want
    assert plain(taeda.load(path)) == want


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype(path, name) -> None:
    import torch

    def make(lib):
        data = lib.tensor([0.0, 1.0, 2.0, 3.0, 100.0, 5.0])
        return data.to(getattr(lib, name)).reshape(2, 3)

    def bits(lib, tensor) -> list:
        real = lib.view_as_real(tensor) if tensor.is_complex() else tensor
        return real.contiguous().view(lib.uint8).tolist()

    taeda.save(make(taeda), path)
    theirs = torch.load(path, weights_only=True)
    assert str(theirs.dtype) == f"torch.{name}"
    assert bits(torch, theirs) == bits(torch, make(torch))
    torch.save(make(torch), path)
    assert bits(taeda, taeda.load(path)) == bits(torch, make(torch))


@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}])
def test_shared_storages_stay_shared(path, options) -> None:
    data = taeda.arange(24.0)
    taeda.save({"all": data, "part": data[4:8], "grid": data.view(4, 6)}, path)
    assert path.stat().st_size < 2 * 24 * 4 + 2000
    loaded = taeda.load(path, **options)
    loaded["all"][5] = -1
    assert loaded["part"][1].item() == -1
    assert loaded["grid"][0, 5].item() == -1


def test_mapped_changes_stay_private(path) -> None:
    taeda.save(taeda.zeros(1000), path)
    before = path.read_bytes()
    mapped = taeda.load(path, mmap=True)
    mapped.add_(1)
    assert mapped.sum().item() == 1000
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="mmap=True"):
        taeda.load(io.BytesIO(before), mmap=True)


def test_records_are_aligned_and_named_as_pytorchs(path) -> None:
    import torch

    names = []
    for lib in (torch, taeda):
        lib.save({"a": lib.ones(3), "b": lib.ones(5)}, path)
        with zipfile.ZipFile(path) as file:
            assert file.testzip() is None
            names.append(file.namelist())
            for entry in file.infolist():
                start = entry.header_offset + 30
                raw = path.read_bytes()[start - 4 : start]
                lengths = int.from_bytes(raw[:2], "little") + int.from_bytes(
                    raw[2:], "little"
                )
                assert (start + lengths) % 64 == 0
    assert names[0] == names[1]


@pytest.mark.parametrize(
    "place",
    ["cpu", taeda.device("cpu"), {"cpu": "cpu"}, lambda storage, tag: storage],
    ids=["text", "device", "table", "function"],
)
def test_map_location(path, place) -> None:
    taeda.save(taeda.ones(2), path)
    assert taeda.load(path, map_location=place).tolist() == [1.0, 1.0]


def test_map_location_to_meta_and_to_a_missing_device(path) -> None:
    taeda.save(taeda.ones(2), path)
    assert taeda.load(path, map_location="meta").device.type == "meta"
    if not taeda.cuda.is_available():
        with pytest.raises(RuntimeError, match="map_location='cpu'"):
            taeda.load(path, map_location="cuda:0")
    with pytest.raises(RuntimeError, match="don't know how to restore"):
        taeda.load(path, map_location="nowhere")


def test_sparse_tensors_are_read(path) -> None:
    import torch

    torch.save(torch.eye(2).to_sparse(), path)
    assert taeda.load(path).to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_file_objects() -> None:
    stream = io.BytesIO(b"before")
    stream.seek(6)
    taeda.save([taeda.ones(2)], stream)
    stream.seek(6)
    assert taeda.load(stream)[0].tolist() == [1.0, 1.0]
    with pytest.raises(AttributeError, match="write"):
        taeda.save([], object())
    with pytest.raises(AttributeError, match="seekable"):
        taeda.load(object())


def test_a_state_dict_keeps_its_metadata(path) -> None:
    state = OrderedDict(weight=taeda.ones(2))
    state._metadata = OrderedDict({"": {"version": 1}})
    taeda.save(state, path)
    assert taeda.load(path)._metadata == state._metadata


class Config:
    def __init__(self, size: int) -> None:
        self.size = size


def test_classes_must_be_trusted(path) -> None:
    taeda.save(Config(3), path)
    full = f"{Config.__module__}.Config"
    assert taeda.serialization.get_unsafe_globals_in_checkpoint(path) == [full]
    with pytest.raises(Exception, match="Unsupported global: GLOBAL .*Config"):
        taeda.load(path)
    with taeda.serialization.safe_globals([Config]):
        assert taeda.load(path).size == 3
        assert taeda.serialization.get_safe_globals() == [Config]
    with pytest.raises(Exception, match="Unsupported global"):
        taeda.load(path)
    assert taeda.load(path, weights_only=False).size == 3
    taeda.serialization.add_safe_globals([(Config, full)])
    assert taeda.load(path).size == 3
    taeda.serialization.clear_safe_globals()
    assert taeda.serialization.get_safe_globals() == []


def test_one_storage_under_two_dtypes_is_refused(path) -> None:
    data = taeda.ones(4)
    with pytest.raises(RuntimeError, match="different types"):
        taeda.save([data, data.view(taeda.int32)], path)
    assert not path.exists()


def attacks(marker: str) -> dict[str, bytes]:
    """Pickles that would make the folder `marker`."""
    make = forge.name("os", "mkdir") + b"(" + forge.text(marker) + b"tR"
    posix = forge.name("posix", "mkdir") + b"(" + forge.text(marker) + b"tR"
    source = f"__import__('os').mkdir({marker!r})"
    run = forge.name("builtins", "eval") + b"(" + forge.text(source) + b"tR"
    old = forge.name("__builtin__", "exec") + b"(" + forge.text(source) + b"tR"
    got = forge.name("builtins", "getattr")
    ordered = forge.name("collections", "OrderedDict") + b")R"
    stacked = forge.text("os") + forge.text("mkdir") + b"\x93("
    stacked += forge.text(marker) + b"tR"
    return {
        "os": make,
        "posix": posix,
        "eval": run,
        "exec": old,
        "getattr": got + b"(" + ordered + forge.text("clear") + b"tR",
        "in a list": b"]" + make + b"a",
        "as state": ordered + b"}" + forge.text("x") + make + b"sb",
        "stack global": stacked,
        "nested load": forge.name("torch.storage", "_load_from_bytes"),
        "our own loader": forge.name("taeda.serialization", "load"),
        "our own module": forge.name("taeda._io.machine", "Machine"),
        "builtin set item": forge.name("builtins", "set") + b")R" + b"N" + b"a",
        "device list": forge.name("torch", "device") + b"(]tR" + make,
        "INST": b"(" + forge.text(marker) + b"ios\nmkdir\n",
    }


@pytest.mark.parametrize("form", ["zip", "legacy"])
@pytest.mark.parametrize("name", attacks("x"))
def test_nothing_in_a_file_runs(path, tmp_path, name, form) -> None:
    marker = str(tmp_path / "marker")
    data = forge.program(attacks(marker)[name])
    write(path, forge.archive(data) if form == "zip" else forge.legacy(data))
    with pytest.raises(Exception) as caught:
        taeda.load(path)
    assert type(caught.value).__name__ == "UnpicklingError"
    assert str(caught.value)
    assert not os.path.exists(marker)


LIES = {
    "size beyond": {"size": (1_000_000,)},
    "offset beyond": {"offset": 1 << 40},
    "negative offset": {"offset": -8},
    "negative size": {"size": (-2,)},
    "negative stride": {"offset": 3, "stride": (-1,)},
    "overflowing stride": {"size": (3, 3), "stride": (1 << 62, 1 << 62)},
    "overflowing size": {"size": (1 << 33, 1 << 33), "stride": (0, 0)},
    "size without stride": {"size": (2, 2), "stride": (1,)},
    "huge storage": {"count": 1 << 50},
    "negative storage": {"count": -4},
    "larger than its record": {"count": 64, "size": (64,)},
    "missing record": {"key": "9"},
    "outside record": {"key": "../version"},
    "no storage class": {"kind": ("collections", "OrderedDict")},
}


@pytest.mark.parametrize("name", LIES)
def test_lying_tensors_are_refused(path, name) -> None:
    write(path, forge.archive(forge.program(forge.tensor(**LIES[name]))))
    with pytest.raises((RuntimeError, Exception), match=r"\w+"):
        taeda.load(path)


def test_the_forged_tensor_itself_is_sound(path) -> None:
    write(path, forge.archive(forge.program(forge.tensor())))
    assert taeda.load(path).tolist() == [0.0] * 4


PICKLES = {
    "nothing": b"",
    "no stop": b"\x80\x02]",
    "empty stack": b"\x80\x02.",
    "memo missing": b"\x80\x02h\x07.",
    "mark missing": b"\x80\x02t.",
    "huge string": b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"x.",
    "huge bytes": b"\x80\x04\x8e" + (1 << 62).to_bytes(8, "little") + b"x.",
    "huge frame": b"\x80\x04\x95" + (1 << 62).to_bytes(8, "little") + b"].",
    "negative long": b"\x80\x02\x8b\xfb\xff\xff\xff.",
    "future protocol": b"\x80\xff].",
    "unknown opcode": b"\x80\x02\xfe.",
    "bad text": b"\x80\x02X\x02\x00\x00\x00\xff\xfe.",
    "bytearray bomb": forge.program(
        forge.name("builtins", "bytearray") + b"(" + forge.integer(1 << 40) + b"tR"
    ),
    "unhashable key": forge.program(b"}]Ns"),
    "append to tuple": forge.program(b")Na"),
}


@pytest.mark.parametrize("name", PICKLES)
def test_damaged_pickles_are_refused(path, name) -> None:
    write(path, forge.archive(PICKLES[name]))
    with pytest.raises(Exception) as caught:
        taeda.load(path)
    assert type(caught.value).__name__ in ("UnpicklingError", "EOFError")


@pytest.fixture(scope="module")
def sound() -> bytes:
    stream = io.BytesIO()
    taeda.save({"a": taeda.arange(1000.0), "b": taeda.ones(3)}, stream)
    return stream.getvalue()


@pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(path, sound, part) -> None:
    write(path, sound[: int(len(sound) * part)])
    with pytest.raises((RuntimeError, EOFError, Exception), match=r"\w+"):
        taeda.load(path)


def test_flipped_bits_are_noticed(path, sound) -> None:
    want = taeda.load(io.BytesIO(sound))
    for place in range(7, len(sound), 61):
        data = bytearray(sound)
        data[place] ^= 1 << place % 8
        try:
            loaded = taeda.load(io.BytesIO(bytes(data)))
        except Exception as error:
            assert str(error)
        else:  # in padding or in fields without a meaning
            assert [v.tolist() for v in loaded.values()] == [
                v.tolist() for v in want.values()
            ]


@pytest.fixture(params=["taeda", "torch"])
def saver(request):
    """A library that saves without checksums."""
    lib = importlib.import_module(request.param)
    lib.serialization.set_crc32_options(False)
    assert lib.serialization.get_crc32_options() is False
    yield lib
    lib.serialization.set_crc32_options(True)


def test_files_without_checksums(path, saver) -> None:
    saver.save({"a": saver.arange(3.0), "b": [1]}, path)
    with zipfile.ZipFile(path) as archive:
        assert {record.CRC for record in archive.infolist()} == {0}
    with pytest.raises(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        archive.read(archive.infolist()[0])
    for reader in (taeda, importlib.import_module("torch")):
        found = reader.load(path)
        assert found["a"].tolist() == [0, 1, 2] and found["b"] == [1]


def test_one_missing_checksum_is_noticed(path, sound) -> None:
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        crc = archive.getinfo("archive/data/0").CRC.to_bytes(4, "little")
    assert sound.count(crc) == 2  # beside the record and in the directory
    with pytest.raises(RuntimeError, match="wrong checksum"):
        taeda.load(write(path, sound.replace(crc, bytes(4))))


def test_a_compressed_bomb_is_refused(path) -> None:
    data = forge.program(forge.tensor())
    bomb = forge.archive(data, {"0": bytes(1 << 28)}, zipfile.ZIP_DEFLATED)
    write(path, bomb)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(RuntimeError, match="bytes"):
        taeda.load(path)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100 << 10


def test_a_compressed_checkpoint_loads(path) -> None:
    data = forge.program(forge.tensor())
    write(path, forge.archive(data, compression=zipfile.ZIP_DEFLATED))
    assert taeda.load(path).tolist() == [0.0] * 4


@pytest.mark.parametrize("content", [b"", b"hello\n" * 50, b"PK\3\4", bytes(4096)])
def test_other_files_are_refused(path, content) -> None:
    write(path, content)
    with pytest.raises(Exception, match=r"\w+"):
        taeda.load(path)


def test_a_failed_save_keeps_the_old_file(path, monkeypatch) -> None:
    taeda.save({"a": taeda.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        taeda.save([taeda.ones(5), lambda: None], path)
    assert path.read_bytes() == before
    from taeda._io import atomic

    real, calls = atomic.AtomicFile.write, []

    def full(self, data):
        calls.append(len(data))
        real(self, memoryview(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.AtomicFile, "write", full)
    with pytest.raises(OSError, match="No space left"):
        taeda.save({"a": taeda.ones(100_000)}, path)
    assert calls
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_file_size_limit_keeps_the_old_file(path) -> None:
    """The same with a real limit of the system, in a process of its own."""
    program = (
        "import resource, signal, sys, taeda\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "taeda.save(taeda.ones(3), sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))\n"
        "try:\n"
        "    taeda.save(taeda.ones(1 << 20), sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(error)\n"
        "print(taeda.load(sys.argv[1]).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert "File too large" in lines[0]
    assert lines[1] == "[1.0, 1.0, 1.0]"
    assert os.listdir(path.parent) == [path.name]


def test_a_full_device_is_an_error() -> None:
    with pytest.raises(OSError) as info:
        taeda.save(taeda.ones(100_000), "/dev/full")
    assert info.value.errno == errno.ENOSPC


def test_saving_through_a_link_and_into_a_missing_folder(path) -> None:
    link = path.parent / "link.pt"
    link.symlink_to(path.name)
    taeda.save(taeda.ones(1), link)
    assert link.is_symlink()
    assert taeda.load(path).item() == 1.0
    with pytest.raises(RuntimeError, match="Parent directory"):
        taeda.save(taeda.ones(1), path.parent / "missing" / "x.pt")


def test_many_threads_load_at_once(path) -> None:
    import threading

    taeda.save({str(i): taeda.full((50,), float(i)) for i in range(20)}, path)
    wrong = []

    def work() -> None:
        for _ in range(5):
            loaded = taeda.load(path)
            if [v[0].item() for v in loaded.values()] != list(map(float, range(20))):
                wrong.append(loaded)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("kind", [io.BytesIO, tempfile.TemporaryFile])
def test_a_program_reads_on_behind_an_old_file(kind) -> None:
    file = kind()
    for number in range(2):
        pickle.dump(number, file)
        values = taeda.full((3,), float(number))
        taeda.save(values, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    for number in range(2):
        assert pickle.load(file) == number
        assert taeda.load(file).tolist() == [number] * 3
    assert not file.read()
