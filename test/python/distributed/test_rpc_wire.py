"""What travels between workers: strangers, damaged frames, and values of many kinds."""

from __future__ import annotations

import os
import pickle
import random
import socket
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
import taeda
from taeda.distributed import rpc
from taeda.distributed.rpc import _wire, api
from taeda.distributed.rpc._listener import connect

FUZZ = Path(__file__).parents[2] / "fuzz" / "fuzz_rpc.py"
_executed: list[int] = []


def execute() -> None:
    _executed.append(1)


def same(value):
    return value


def late(seconds: float) -> None:
    time.sleep(seconds)


CALL = [b"", pickle.dumps((execute, (), {}))]


@pytest.fixture
def worker(tmp_path):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/job")
    rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
    _executed.clear()
    yield api._agent()
    rpc.shutdown()


def greeted(agent):
    return connect(agent.directory.address(0), agent._secret, 0, 0, 10)


def ended(link: socket.socket) -> bool:
    """Whether the worker closed the connection, within some seconds."""
    link.settimeout(10)
    try:
        while link.recv(1000):
            pass
        return True
    except ConnectionError:
        return True


def test_a_caller_with_the_secret_is_served(worker):
    link, keys = greeted(worker)
    with link:
        link.sendall(b"".join(_wire.FrameWriter(keys[0]).frame(_wire.CALL, 7, CALL)))
        kind, number, _ = _wire.FrameReader(link, keys[1]).read()
    assert (kind, number, _executed) == (_wire.RESULT, 7, [1])


@pytest.mark.parametrize("place", range(0, 130, 5))
def test_a_changed_byte_ends_the_connection(worker, place):
    link, keys = greeted(worker)
    with link:
        frame = bytearray(b"".join(_wire.FrameWriter(keys[0]).frame(1, 7, CALL)))
        assert len(frame) > 130
        frame[place] ^= 1
        link.sendall(frame)
        link.shutdown(socket.SHUT_WR)
        assert ended(link) and not _executed


@pytest.mark.parametrize("local", [True, False])
def test_bytes_of_tensors_are_signed_between_machines(local):
    """Every byte is, but for those that stay on one machine."""
    key, parts = b"k" * 32, [b"note", b"pickle", b"tensor", b"other"]
    whole = b"".join(_wire.FrameWriter(key, local).frame(1, 7, parts))
    unsigned = whole.index(b"tensorother")
    for place in range(len(whole)):
        frame = bytearray(whole)
        frame[place] ^= 1
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(frame)
            ours.shutdown(socket.SHUT_WR)
            reader = _wire.FrameReader(theirs, key, local)
            if local and unsigned <= place < unsigned + len(b"tensorother"):
                assert _wire.split(reader.read()[2])[:2] == parts[:2]
            else:
                with pytest.raises(_wire.WireError):
                    reader.read()


def test_a_repeated_or_reflected_frame_is_refused(worker):
    link, keys = greeted(worker)
    with link:
        frame = b"".join(_wire.FrameWriter(keys[0]).frame(1, 7, CALL))
        link.sendall(frame + frame)
        reader = _wire.FrameReader(link, keys[1])
        reader_saw = []
        with pytest.raises((_wire.WireError, ConnectionError)):
            while True:
                reader_saw.append(reader.read()[0])
    assert len(_executed) <= 1 and len(reader_saw) <= 1
    link, keys = greeted(worker)
    with link:
        link.sendall(b"".join(_wire.FrameWriter(keys[1]).frame(1, 7, CALL)))
        assert ended(link)
    link, keys = greeted(worker)
    with link:  # Recorded on another connection.
        link.sendall(frame)
        assert ended(link)
    assert len(_executed) <= 1


def test_strangers(worker):
    address = worker.directory.address(0)
    with pytest.raises(_wire.WireError, match="is not worker 0 of this job"):
        connect(address, b"x" * 32, 0, 0, 10)
    with pytest.raises(_wire.WireError, match="is not worker 1 of this job"):
        connect(address, worker._secret, 0, 1, 10)
    source = random.Random(1)
    for start in (b"", b"TRP1", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"):
        with socket.create_connection(address) as link:
            link.sendall(start + source.randbytes(500))
            assert ended(link)
    proof = _wire._PROOF.pack(b"TRP1", True, 0, 0, b"y" * 32)
    with socket.create_connection(address) as link:
        link.sendall(_wire.HELLO.pack(b"TRP1", b"n" * 32) + proof)
        link.recv(_wire._WELCOME.size)
        assert ended(link)
    assert rpc.rpc_sync("alone", same, args=(3,)) == 3


def test_silent_strangers_keep_nobody_out(worker):
    """More than can wait at once; the oldest of them are dropped."""
    address = worker.directory.address(0)
    silent = [socket.create_connection(address) for _ in range(90)]
    link, _ = greeted(worker)
    link.close()
    assert ended(silent[0])
    for link in silent:
        link.close()


def test_announced_lengths_take_no_memory(worker):
    """Neither those of strangers nor those of a worker that lies."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        link, keys = greeted(worker)
        with link:
            head = _wire._HEAD.pack(b"TRP1", 1, 7, _wire.MOST_BYTES)
            mac = _wire._mac(keys[0], _wire._LENGTH.pack(0), head)[:16]
            link.sendall(head + mac + bytes(100))
            link.shutdown(socket.SHUT_WR)
            assert ended(link)
        link, keys = greeted(worker)
        with link:
            head = _wire._HEAD.pack(b"TRP1", 1, 7, _wire.MOST_BYTES + 1)
            mac = _wire._mac(keys[0], _wire._LENGTH.pack(0), head)[:16]
            link.sendall(head + mac)
            assert ended(link)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 4 << 20


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "0 bytes has no number of parts"),
        (b"\xff\xff\xff\xff" + bytes(20), "announces 4294967295 parts"),
        (b"\0\0\0\1" + b"\xff" * 8, "part 0 announces"),
        (b"\0\0\0\1" + bytes(8) + b"more", "4 bytes belong to no part"),
    ],
)
def test_bodies(body, text):
    with pytest.raises(_wire.WireError, match=text):
        _wire.split(bytearray(body))


def test_an_own_secret_keeps_out_who_reads_the_store(worker, monkeypatch):
    from taeda.distributed.rpc import _meeting

    drawn = _meeting._secret(worker.store, 1)
    assert drawn == worker._secret
    monkeypatch.setenv("TAEDA_RPC_SECRET", "of this job")
    other = _meeting._secret(worker.store, 1)
    with pytest.raises(_wire.WireError):
        connect(worker.directory.address(0), other, 0, 0, 10)


DTYPES = "float32 float64 float16 bfloat16 int8 int64 bool uint8 complex64 float8_e5m2"


def test_tensors(worker):
    x = taeda.arange(24).reshape(2, 3, 4)
    values = [x.to(getattr(taeda, name)) for name in DTYPES.split()]
    values += [taeda.tensor(3.5), taeda.empty(0, 3), x[1], x[:, ::2], x.transpose(0, 2)]
    values += [values[8].conj(), taeda.ones(3).expand(2, 3), x.permute(2, 0, 1)]
    for value in values:
        back = rpc.rpc_sync("alone", same, args=(value,))
        assert back.dtype == value.dtype and back.shape == value.shape
        assert taeda.equal(back.resolve_conj().double(), value.double()) or (
            value.is_complex() and taeda.equal(back, value)
        )
        back.resize_(0)
    sparse = taeda.eye(3).to_sparse()
    back = rpc.rpc_sync("alone", same, args=(sparse,))
    assert back.is_sparse and taeda.equal(back.to_dense(), taeda.eye(3))
    module = taeda.nn.Linear(2, 2)
    back = rpc.rpc_sync("alone", same, args=(module,))
    assert type(back.weight) is taeda.nn.Parameter and back.weight is not module.weight
    assert taeda.equal(back.weight, module.weight)
    with pytest.raises(RuntimeError, match="a tensor of meta cannot be sent"):
        rpc.rpc_sync("alone", same, args=(taeda.empty(2, device="meta"),))


def test_a_part_travels_without_the_rest(worker):
    from taeda.distributed.rpc._messages import encode

    large = taeda.zeros(1000, 1000)
    assert sum(map(len, encode(large[3], worker, 0))) < 5000


def test_what_does_not_pickle(worker):
    with pytest.raises(TypeError, match="cannot pickle"):
        rpc.rpc_sync("alone", same, args=(socket.socket(),))
    with pytest.raises(TypeError, match="cannot pickle"):
        rpc.rpc_sync("alone", socket.socket)
    reference = rpc.RRef(1)
    with pytest.raises(TypeError, match="cannot pickle"):
        rpc.rpc_sync("alone", same, args=(reference, socket.socket()))
    assert rpc._get_debug_info()["num_owner_rrefs"] == "0"


def test_names_and_options():
    options = rpc.TensorPipeRpcBackendOptions
    with pytest.raises(RuntimeError, match="num_worker_threads must be positive"):
        options(num_worker_threads=0)
    with pytest.raises(RuntimeError, match="RPC Timeout must be non-negative"):
        options(rpc_timeout=-1)
    with pytest.raises(NotImplementedError, match="cuda"):
        options(device_maps={"w1": {"cpu": "cuda:0"}})
    given = options(device_maps={"w1": {"cpu": "cpu"}}, devices=["cpu"])
    assert given.device_maps == {"w1": {taeda.device("cpu"): taeda.device("cpu")}}
    assert (given.rpc_timeout, given.init_method) == (60.0, "env://")
    with pytest.raises(TypeError, match="must be a member of BackendType"):
        rpc.init_rpc("a", backend="TENSORPIPE")
    with pytest.raises(TypeError, match="must be an instance of RpcBackendOptions"):
        rpc.init_rpc("a", rpc_backend_options=3)
    with pytest.raises(RuntimeError, match="RPC has not been initialized. Call"):
        rpc.RRef(1)


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "ä"])
def test_worker_names(tmp_path, name):
    given = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/job")
    with pytest.raises(ValueError, match="Worker name must match"):
        rpc.init_rpc(name, rank=0, world_size=1, rpc_backend_options=given)
    assert not rpc._is_current_rpc_agent_set()


def test_backends():
    from taeda.distributed.rpc import backend_registry as registry

    before = registry.BackendType
    try:
        kind = registry.register_backend("OTHER", dict, lambda **given: given["name"])
        assert registry.backend_registered("OTHER") and kind.name == "OTHER"
        assert registry.init_backend(kind, name="n") == "n"
        with pytest.raises(RuntimeError, match="already registered"):
            registry.register_backend("OTHER", dict, dict)
    finally:
        registry.BackendType = before
    assert repr(rpc.BackendType.TENSORPIPE) == "BackendType.TENSORPIPE"


def test_shutdown_at_once(tmp_path):
    given = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tmp_path}/job")
    rpc.init_rpc("a", rank=0, world_size=1, rpc_backend_options=given)
    future = rpc.rpc_async("a", late, args=(5.0,))
    started = time.monotonic()
    rpc.shutdown(graceful=False)
    with pytest.raises(RuntimeError, match="RPC was shut down"):
        future.wait()
    assert time.monotonic() - started < 4


def test_fuzz():
    """A short form of `test/fuzz/fuzz_rpc.py`: 1,000 messages."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FUZZ), "--count=50"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=80)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "50 inputs" in ran.stdout
