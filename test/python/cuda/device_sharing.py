"""Tensors and marks of devices that several processes have."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest
import taeda
from sharing_workers import add_one, check_large, wait_for_event
from taeda import cuda
from taeda import multiprocessing as mp

MIB = 1 << 20


@pytest.fixture
def context():
    return mp.get_context("spawn")


def run(context, target, *args) -> None:
    process = context.Process(target=target, args=args)
    process.start()
    process.join(120)
    alive = process.is_alive()
    process.kill()
    assert not alive and process.exitcode == 0


def test_both_see_what_one_writes(context) -> None:
    incoming, outgoing = context.Queue(), context.Queue()
    x = taeda.arange(12.0, device="cuda").reshape(3, 4)
    weight = taeda.nn.Parameter(taeda.ones(5, device="cuda"))
    incoming.put((x.t()[1:], weight))
    run(context, add_one, incoming, outgoing)
    total, ones, shape, stride = outgoing.get(timeout=10)
    want = taeda.arange(12.0).reshape(3, 4)
    want.t()[1:] += 1
    assert (total, ones) == (want.t()[1:].sum(), 5)
    assert (tuple(shape), tuple(stride)) == ((3, 3), (1, 4))
    assert taeda.equal(x.cpu(), want)


def test_memory_of_several_pages(context) -> None:
    first = taeda.empty(15 * MIB, dtype=taeda.uint8, device="cuda:1")
    x = taeda.full((50 * MIB,), 7, dtype=taeda.uint8, device="cuda:1")
    incoming = context.Queue()
    incoming.put(x)
    run(context, check_large, incoming, "cuda:1")
    assert first.numel() == 15 * MIB


def test_the_sender_keeps_what_is_in_use(context) -> None:
    cuda.ipc_collect()
    gc.collect()
    before = cuda.memory_allocated()
    incoming, outgoing = context.Queue(), context.Queue()
    x = taeda.ones(100, device="cuda")
    incoming.put((x, taeda.nn.Parameter(taeda.ones(3, device="cuda"))))
    del x
    cuda.ipc_collect()
    assert cuda.memory_allocated() > before
    run(context, add_one, incoming, outgoing)
    assert outgoing.get(timeout=10)[0] == 200
    cuda.ipc_collect()
    assert cuda.memory_allocated() == before


def test_work_in_flight_is_waited_for(context) -> None:
    incoming, outgoing = context.Queue(), context.Queue()
    x = taeda.zeros(1000, device="cuda")
    for _ in range(40):
        x.add_(1)
    incoming.put((x, taeda.nn.Parameter(taeda.ones(1, device="cuda"))))
    run(context, add_one, incoming, outgoing)
    assert outgoing.get(timeout=10)[0] == 41_000


def test_events_of_other_processes(context) -> None:
    event = cuda.Event(interprocess=True)
    x = taeda.zeros(10, device="cuda")
    for _ in range(10):
        x.add_(1)
    event.record()
    here, there = context.Pipe()
    run(context, wait_for_event, event.ipc_handle(), there)
    assert here.recv() == "passed"
    with pytest.raises(RuntimeError, match="interprocess=True"):
        cuda.Event().ipc_handle()
    with pytest.raises(ValueError, match="cannot be timed"):
        cuda.Event(enable_timing=True, interprocess=True)
    with pytest.raises(ValueError, match="64 bytes, got 3"):
        cuda.Event.from_ipc_handle("cuda", b"abc")


def test_in_one_process_it_stays_the_same() -> None:
    queue = mp.SimpleQueue()
    x = taeda.ones(4, device="cuda")
    queue.put(x)
    y = queue.get()
    assert y.data_ptr() == x.data_ptr()
    queue.put(taeda.empty(0, 3, device="cuda"))
    empty = queue.get()
    assert empty.is_cuda and empty.shape == (0, 3)


def test_segments_that_do_not_grow() -> None:
    text = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import device_sharing, taeda
from taeda import multiprocessing as mp
if __name__ == "__main__":
    taeda.cuda.memory._set_allocator_settings("expandable_segments:False")
    context = mp.get_context("spawn")
    device_sharing.test_both_see_what_one_writes(context)
    device_sharing.test_the_sender_keeps_what_is_in_use(context)
    snapshot = taeda.cuda.memory_snapshot()
    print(any(s["is_expandable"] for s in snapshot))
"""
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
