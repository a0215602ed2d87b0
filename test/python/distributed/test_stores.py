"""Stores: their operations, limits of time, and what strangers send to the server."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from datetime import timedelta

import pytest
import taeda.distributed as dist

HELLO = b"TAEDAst1"


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


@pytest.fixture(params=["tcp", "file", "hash", "prefix"])
def store(request, tmp_path):
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True, seconds(10))
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    hashed = dist.HashStore()
    return hashed if request.param == "hash" else dist.PrefixStore("p", hashed)


def test_operations(store):
    store.set("k", b"\x00\xff")
    assert store.get("k") == b"\x00\xff"
    assert [store.add("n", 5), store.add("n", -7)] == [5, -2]
    assert store.get("n") == b"-2"
    assert store.compare_set("c", "", "one") == b"one"
    assert store.compare_set("c", "two", "three") == b"one"
    assert store.compare_set("c", "one", "two") == b"two"
    assert store.compare_set("absent", "x", "y") == b"x"
    assert store.check(["k", "n"]) and not store.check(["absent"])
    store.append("k", "more")
    assert store.multi_get(["c", "k"]) == [b"two", b"\x00\xffmore"]
    store.multi_set(["a", "b"], ["1", "2"])
    assert store.get("b") == b"2"
    assert store.delete_key("a") and not store.check(["a"])
    store.set("word", "abc")
    with pytest.raises(dist.DistStoreError, match="'.*word' is not a number"):
        store.add("word", 1)
    with pytest.raises(RuntimeError, match="2 keys and 1 values"):
        store.multi_set(["a", "b"], ["1"])
    store.add("most", 2**63 - 1)
    with pytest.raises(dist.DistStoreError, match="beyond 64 bits"):
        store.add("most", 1)


def test_limits(store):
    store.set_timeout(seconds(0.2))
    started = time.monotonic()
    with pytest.raises(dist.DistStoreError, match="wait timeout after 200ms.*absent"):
        store.get("absent")
    with pytest.raises(dist.DistStoreError, match="after 300ms"):
        store.wait(["absent"], seconds(0.3))
    assert 0.4 < time.monotonic() - started < 5
    assert store.timeout == seconds(0.2)


def test_waiters_of_other_threads(store):
    store.set_timeout(seconds(10))
    second = store.clone()
    thread = threading.Timer(0.1, lambda: second.set("late", "came"))
    thread.start()
    assert store.get("late") == b"came"
    thread.join()


def test_many_clients():
    server = dist.TCPStore("127.0.0.1", 0, None, True, seconds(20))
    clients = [
        dist.TCPStore("127.0.0.1", server.port, None, False, seconds(20))
        for _ in range(200)
    ]
    threads = [
        threading.Thread(target=lambda c=c: (c.add("n", 1), c.get("go")))
        for c in clients
    ]
    for thread in threads:
        thread.start()
    while server.add("n", 0) < 200:
        time.sleep(0.01)
    server.set("go", "1")
    for thread in threads:
        thread.join()
    assert server.get("n") == b"200"


def test_server_survives_strangers():
    server = dist.TCPStore("127.0.0.1", 0, None, True, seconds(10))
    server.set("k", "v")
    draw = random.Random(0)
    kept = []
    for turn in range(300):
        s = socket.create_connection(("127.0.0.1", server.port))
        body = draw.randbytes(draw.randrange(40))
        kinds = {
            0: draw.randbytes(draw.randrange(1, 100)),
            1: HELLO + struct.pack("<I", 2**31) + body,
            2: HELLO + struct.pack("<I", len(body)) + body,
            3: HELLO + struct.pack("<IBI", 9, draw.randrange(20), 2**32 - 1) + body,
            4: HELLO + struct.pack("<I", 1 << 29) + body,
        }
        s.sendall(kinds[turn % 5])
        if turn % 3:
            s.close()
        else:
            kept.append(s)
    assert server.get("k") == b"v"
    with open("/proc/self/status") as file:
        peak = next(line for line in file if line.startswith("VmRSS")).split()[1]
    assert int(peak) < 2_000_000  # kB: announced lengths were not allocated


def test_files_of_others(tmp_path):
    path = tmp_path / "junk"
    path.write_bytes(b"not a store at all")
    with pytest.raises(dist.DistStoreError, match="is not the file of a store"):
        dist.FileStore(str(path), 1)
    whole = dist.FileStore(str(tmp_path / "cut"), -1)
    whole.set("a", "1")
    with open(tmp_path / "cut", "ab") as file:
        file.write(b"\x00\x00")  # a writer that was killed
    again = dist.FileStore(str(tmp_path / "cut"), -1)
    again.set("b", "2")
    assert [whole.get("a"), whole.get("b")] == [b"1", b"2"]


def test_last_user_removes_the_file(tmp_path):
    path = tmp_path / "users"
    first, second = (dist.FileStore(str(path), 2) for _ in range(2))
    first.set("k", "v")
    del first
    assert path.exists() and second.get("k") == b"v"
    del second
    assert not path.exists()


def test_addresses():
    first = dist.TCPStore("127.0.0.1", 0, 1, True, seconds(5))
    with pytest.raises(dist.DistNetworkError, match="EADDRINUSE"):
        dist.TCPStore("127.0.0.1", first.port, 1, True, seconds(5))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    with pytest.raises(dist.DistNetworkError, match="timed out after 500ms"):
        dist.TCPStore("127.0.0.1", free, 1, False, seconds(0.5))
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, seconds(0.3))


class Mine(dist.Store):
    """A store in Python."""

    def __init__(self):
        super().__init__()
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key]


def test_store_in_python():
    mine = Mine()
    below = dist.PrefixStore("p", mine)
    below.set("k", "v")
    assert mine.values == {"p/k": b"v"}
    assert below.get("k") == b"v"
    with pytest.raises(NotImplementedError, match="does not define add"):
        below.add("n", 1)
