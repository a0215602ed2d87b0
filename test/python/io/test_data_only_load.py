"""What a data-only load accepts, and that its bounds refuse nothing that is real."""

from __future__ import annotations

import io
import pathlib
import pickle
import random
import struct
import sys
import threading
import zipfile
import zoneinfo
from collections import Counter, OrderedDict

import pytest
import taeda
from taeda._io import limits, machine

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import forge

FOUR = struct.pack("<4f", 1, 2, 3, 4)
serialization = taeda.serialization


def saved(value) -> bytes:
    stream = io.BytesIO()
    taeda.save(value, stream)
    return stream.getvalue()


def again(value):
    return taeda.load(io.BytesIO(saved(value)))


@pytest.fixture(params=["plain", "watched"])
def steps(request, monkeypatch) -> None:
    """Both tables of the machine's steps."""
    if request.param == "watched":
        monkeypatch.setattr(machine, "_DENSEST", 1 << 62)


REAL = {
    "integers": list(range(300_000)),
    "floats": [float(i) / 3 for i in range(200_000)],
    "texts": {f"token{i}": i for i in range(100_000)},
    "pairs as keys": {(f"a{i}", f"b{i % 7}"): i for i in range(50_000)},
    "a grid as keys": {(x, y): 1 for x in range(-150, 150) for y in range(-100, 100)},
    "offsets as keys": {
        (x, y, z): 0 for x in range(-2, 3) for y in range(-2, 3) for z in range(-2, 3)
    },
    "powers of two as keys": {2.0**e: e for e in range(-1000, 1000)},
    "large integers as keys": {
        random.Random(i).getrandbits(128): i for i in range(9999)
    },
    "mixed keys": {None: 1, True: 2, "x": 3, b"y": 4, 2.5: 5, 1j: 6, ((1, 2), ()): 7},
    "own keys": {taeda.float32: 1, taeda.device("cpu"): 2, taeda.Size([1, 2]): 3},
    "sets": [{1, "a", (2, 3)}, set(range(100_000))],
    "counter": Counter("abracadabra"),
    "ordered": OrderedDict((i, str(i)) for i in range(50_000)),
    "deep list": [[[[[[[[[[]]]]]]]]]],
    "bytes": [b"\0\xff" * 1000, bytearray(b"\0\xff" * 1000)],
    "large integer": 3**1000,
    "texts of the world": ["\u00e9" * 1000, "\U0001f600" * 1000, "\ud800"],
}


@pytest.mark.parametrize("case", REAL)
def test_real_values_come_back(case, steps) -> None:
    value = REAL[case]
    loaded = again(value)
    assert type(loaded) is type(value) and loaded == value


def deep(kind, depth: int):
    value = kind()
    for _ in range(depth):
        value = kind((value,))
    return value


@pytest.mark.parametrize("kind", [list, tuple])
def test_nested_as_deep_as_a_pickler_goes(kind, steps) -> None:
    loaded, depth = again(deep(kind, 300)), 0
    while loaded:
        (loaded,), depth = loaded, depth + 1
    assert depth == 300


def test_many_tensors_with_attributes(steps) -> None:
    state = {f"w{i}": taeda.full((2,), float(i)) for i in range(2000)}
    state["w7"].note = {"a": [1]}
    state["p"] = taeda.nn.Parameter(taeda.ones(3))
    state["p"].tag = "x"
    loaded = again(state)
    assert loaded["w7"].note == {"a": [1]} and loaded["p"].tag == "x"
    assert all((loaded[k] == v).all() for k, v in state.items())


def test_an_eighth_of_the_floor_is_enough_for_many_small_tensors(monkeypatch) -> None:
    monkeypatch.setattr(limits, "FLOOR", limits.FLOOR // 8)
    state = {f"layer{i}.weight": taeda.ones(1) for i in range(12_000)}
    assert len(again(state)) == 12_000


def test_python_2_wrote_pairs_and_counted_from_one() -> None:
    pairs = b"](](" + forge.text("a") + b"K\1e](" + forge.text("b") + b"K\2ee"
    body = forge.name("collections", "OrderedDict") + b"q\1" + pairs + b"\x85R"
    loaded = taeda.load(io.BytesIO(forge.archive(forge.program(body))))
    assert loaded == OrderedDict(a=1, b=2)
    skips = b"]q\1K\7q\3ah\3ah\1\x86"
    loaded = taeda.load(io.BytesIO(forge.archive(forge.program(skips))))
    assert loaded[0] == [7, 7] and loaded[1] is loaded[0]


def archive(pickled: bytes, order: str = "little", record: bytes = FOUR) -> bytes:
    """A container whose records lie anywhere, as other programs write them."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("archive/data.pkl", pickled)
        file.writestr("archive/byteorder", order)
        file.writestr("archive/data/0", record)
        file.writestr("archive/version", "3\n")
    return stream.getvalue()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("padding", range(8))
def test_records_anywhere_in_the_file(mmap, padding, tmp_path) -> None:
    body = forge.tensor() + forge.text("x" * padding) + b"\x86"
    path = tmp_path / "x.pt"
    path.write_bytes(archive(forge.program(body)))
    tensor, _ = taeda.load(path, mmap=mmap)
    assert tensor.data_ptr() % 4 == 0
    assert tensor.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("mmap", [False, True])
def test_numbers_of_the_other_byte_order(mmap, tmp_path) -> None:
    path = tmp_path / "x.pt"
    swapped = struct.pack(">4f", 1, 2, 3, 4)
    # Stored at a multiple of 64 bytes, where mapping is possible.
    for padding in range(64):
        body = forge.tensor() + forge.text("x" * padding) + b"\x86"
        data = archive(forge.program(body), "big", swapped)
        if data.index(swapped) % 64 == 0:
            break
    path.write_bytes(data)
    assert taeda.load(path, mmap=mmap)[0].tolist() == [1, 2, 3, 4]


CONVERTED = (
    forge.name("torch._utils", "_rebuild_device_tensor_from_cpu_tensor")
    + b"("
    + forge.tensor()
    + forge.name("torch", "float64")
    + forge.text("cpu")
    + b"\x89tR"
)


def test_a_converted_tensor_is_read_before_it_is_converted() -> None:
    junk = [taeda.full((4,), 77.0) for _ in range(100)]
    del junk
    loaded = taeda.load(io.BytesIO(archive(forge.program(CONVERTED))))
    assert loaded.dtype == taeda.float64 and loaded.tolist() == [1, 2, 3, 4]
    with pytest.raises(NotImplementedError, match="old format"):
        taeda.load(io.BytesIO(forge.legacy(forge.program(CONVERTED))))


class First:
    pass


class Second:
    pass


def test_blocks_of_trust_in_threads() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    files = {kind: saved(kind()) for kind in (First, Second)}
    wrong = []

    def work(kind, other) -> None:
        for _ in range(60):
            with serialization.safe_globals([kind, other]):
                try:
                    assert type(taeda.load(io.BytesIO(files[kind]))) is kind
                except Exception as error:
                    wrong.append(error)

    pairs = [(First, Second), (Second, First)] * 2
    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert serialization.get_safe_globals() == []


def test_trust_in_blocks_and_for_good() -> None:
    data = saved(First())
    block = serialization.safe_globals([First])
    with block, serialization.safe_globals([Second]):
        with block:
            pass
        assert type(taeda.load(io.BytesIO(data))) is First
    pair = (First, f"{First.__module__}.First")
    serialization.add_safe_globals([pair])
    with block:
        assert len(serialization.get_safe_globals()) == 1
    assert serialization.get_safe_globals() == [pair]
    assert type(taeda.load(io.BytesIO(data))) is First
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        taeda.load(io.BytesIO(data))


def hostile(body: bytes) -> io.BytesIO:
    return io.BytesIO(forge.archive(forge.program(body)))


PHRASES = {
    "Unsupported global: GLOBAL a.b was not an allowed global": forge.name("a", "b"),
    "whose module os is blocked": forge.name("os", "system"),
    "Trying to call reduce for unrecognized function": b"])R",
    "Can only create new object for nn.Parameter": b"])\x81",
    "Unsupported operand 105": b"i",
    "Can only append to lists, but got": b")Na",
    "Unsupported global: GLOBAL print": forge.name("builtins", "print"),
    "serialization.add_safe_globals([a.b])`": forge.name("a", "b"),
    "Can only SETITEM for dict, collections.OrderedDict, collections.Counter": b"]NNs",
    "Can only SETITEMS for dict, collections.OrderedDict": b"](NNu",
    "Only persistent_load of storage is allowed, but got <class 'int'>": b"K*\x85Q",
    "persistent": b"]Q",
}


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_that_programs_look_for(phrase) -> None:
    import torch

    with pytest.raises(pickle.UnpicklingError) as caught:
        taeda.load(hostile(PHRASES[phrase]))
    with pytest.raises(pickle.UnpicklingError) as theirs:
        torch.load(hostile(PHRASES[phrase]), weights_only=True)
    for error in (caught, theirs):
        assert str(error.value).startswith("Weights only load failed")
        assert phrase in str(error.value) or phrase == "persistent"


def test_the_names_in_a_file() -> None:
    import torch

    body = forge.name("a", "b") + forge.name("os", "c") + forge.tensor() + b"\x87"
    names = serialization.get_unsafe_globals_in_checkpoint(hostile(body))
    theirs = torch.serialization.get_unsafe_globals_in_checkpoint(hostile(body))
    assert sorted(names) == sorted(theirs) == ["a.b", "os.c"]
    hidden = forge.text("m") + b"\x94" + forge.text("n") + b"\x940h\1h\1\x93."
    assert serialization.get_unsafe_globals_in_checkpoint(hostile(hidden)) == ["n.n"]
    for damaged in (b"\xff", b"X\xff\xff\xff\xff", b"]]\x93", b"\x8b\xff\xff\xff\xff"):
        with pytest.raises(pickle.UnpicklingError, match=r"damaged|no text"):
            serialization.get_unsafe_globals_in_checkpoint(hostile(damaged))


def test_the_environment_forces(monkeypatch, tmp_path) -> None:
    data = saved(First())
    load = taeda.load
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(io.BytesIO(data), weights_only=False)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "true")
    with pytest.raises(RuntimeError, match="both set"):
        load(io.BytesIO(data))
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert type(load(io.BytesIO(data))) is First
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(io.BytesIO(data), weights_only=True)


def test_a_pickle_module_runs_code() -> None:
    data = saved(First())
    assert type(taeda.load(io.BytesIO(data), pickle_module=pickle)) is First
    with pytest.raises(RuntimeError, match="weights_only=False"):
        taeda.load(io.BytesIO(data), pickle_module=pickle, weights_only=True)


def test_archives_of_2016() -> None:
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        file.addfile(tarfile.TarInfo("sys_info"))
    with pytest.raises(RuntimeError, match=r"\.tar format"):
        taeda.load(io.BytesIO(stream.getvalue()))


def test_a_trusted_file_may_take_what_it_wants(monkeypatch) -> None:
    monkeypatch.setattr(limits, "FLOOR", 1000)
    data = saved(list(range(50_000)))
    with pytest.raises(pickle.UnpicklingError, match="more memory than a data-only"):
        taeda.load(io.BytesIO(data))
    assert taeda.load(io.BytesIO(data), weights_only=False)[-1] == 49_999


class Wrapper(taeda.Tensor):
    """Answers with its tensor `_inner`."""

    @staticmethod
    def __new__(cls, inner):
        return taeda.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self._inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [a._inner if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})))


@pytest.mark.parametrize("as_parameter", [False, True])
def test_wrappers_come_back_with_what_they_wrap(as_parameter):
    made = Wrapper(taeda.arange(6.0).view(2, 3))
    made = taeda.nn.Parameter(made) if as_parameter else made
    with serialization.safe_globals([Wrapper]):
        loaded = again(made)
    for read in (loaded, pickle.loads(pickle.dumps(made))):
        assert type(read) is Wrapper
        assert read.shape == (2, 3)
        assert read._inner.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert read.requires_grad == as_parameter
        assert isinstance(read, taeda.nn.Parameter) == as_parameter


def test_attributes_with_an_underscore_are_kept():
    x = taeda.ones(2, requires_grad=True)
    x._own = 3
    assert again(x).__dict__ == {"_own": 3}


class Outer:
    class Inner:
        pass


def test_a_trusted_class_that_is_an_attribute() -> None:
    data = io.BytesIO()
    taeda.save([Outer.Inner()], data)  # protocol 2 names it by getattr
    data.seek(0)
    with serialization.safe_globals([Outer, getattr]):
        with pytest.raises(pickle.UnpicklingError, match="Can only create new object"):
            taeda.load(data)
        data.seek(0)
        with serialization.safe_globals([Outer.Inner]):
            assert type(taeda.load(data)[0]) is Outer.Inner


def test_a_trusted_method() -> None:
    data, zone = io.BytesIO(), zoneinfo.ZoneInfo("UTC")
    taeda.save(zone, data)
    data.seek(0)
    with serialization.safe_globals([getattr, zoneinfo.ZoneInfo]):
        with pytest.raises(
            pickle.UnpicklingError, match="_unpickle.*zoneinfo.ZoneInfo"
        ):
            taeda.load(data)
        data.seek(0)
        with serialization.safe_globals([zoneinfo.ZoneInfo._unpickle]):
            assert taeda.load(data) == zone


def test_a_record_that_is_too_short() -> None:
    data = io.BytesIO()
    taeda.save(taeda.zeros(10), data)
    short = io.BytesIO()
    with zipfile.ZipFile(data) as source, zipfile.ZipFile(short, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content[:20] if "/data/" in name else content)
    short.seek(0)
    message = r"record size \(20 bytes\) does not match expected size \(40 bytes"
    with pytest.raises(RuntimeError, match=message):
        taeda.load(short)
