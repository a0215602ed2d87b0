"""Streams, events and devices: what is ordered, and what is not."""

from __future__ import annotations

import threading

import pytest
import taeda
from taeda import cuda


def test_there_are_devices() -> None:
    assert cuda.is_available() and cuda.device_count() == 2
    assert cuda.get_device_name() == "Emulated GPU"
    assert cuda.get_device_capability(1) == (9, 0)
    assert "Emulated GPU" in repr(cuda.get_device_properties(0))
    with pytest.raises(AssertionError, match="Invalid device id"):
        cuda.get_device_properties(2)


def test_devices_are_entered_and_left() -> None:
    assert cuda.current_device() == 0
    with cuda.device(1):
        assert taeda.ones(2, device="cuda").device.index == 1
        with cuda.device(-1), cuda.device(None):
            assert cuda.current_device() == 1
    assert cuda.current_device() == 0
    x = taeda.ones(1, device="cuda:1")
    with cuda.device_of(x):
        assert cuda.current_device() == 1
    # A tensor's operators run where it is, whichever device is current.
    assert (x + x).device.index == 1


def test_streams_are_a_threads_own() -> None:
    other = cuda.Stream()
    seen = []
    with cuda.stream(other):
        assert cuda.current_stream() == other
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [cuda.default_stream()]
    assert cuda.current_stream() == cuda.default_stream() != other


def test_an_event_orders_two_streams() -> None:
    first, second = cuda.Stream(), cuda.Stream()
    for _ in range(20):
        with cuda.stream(first):
            x = taeda.zeros(100, device="cuda")
            for _ in range(10):
                x.add_(1)
            done = first.record_event()
        with cuda.stream(second):
            second.wait_event(done)
            x.record_stream(second)
            y = x * 2
        second.synchronize()
        assert y.cpu().unique().tolist() == [20]


def test_without_an_event_there_is_no_order() -> None:
    """The emulator's reason to be: a wait that is missing gives wrong results."""
    first, second = cuda.Stream(), cuda.Stream()
    wrong = 0
    for _ in range(30):
        with cuda.stream(first):
            x = taeda.zeros(100, device="cuda")
            for _ in range(10):
                x.add_(1)
        with cuda.stream(second):
            y = x * 2
        try:
            cuda.synchronize()
            wrong += y.cpu().unique().tolist() != [20]
        except RuntimeError as error:  # what the checker says of it
            assert "mul_kernel, block (0, 0)" in str(error)
            assert "which nothing has written" in str(error)
            wrong += 1
    assert wrong > 0


def test_events_tell_time_and_progress() -> None:
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    x = taeda.ones(10, device="cuda")
    x.add_(1)
    end.record()
    end.synchronize()
    assert start.query() and end.query()
    assert start.elapsed_time(end) > 0
    with pytest.raises(ValueError, match="enable_timing"):
        cuda.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="recorded"):
        cuda.Event(enable_timing=True).elapsed_time(cuda.Event(enable_timing=True))


def test_streams_of_a_priority() -> None:
    high = cuda.Stream(priority=-3)
    assert high.priority == -3 and cuda.Stream(priority=7).priority == 0
    pool = {cuda.Stream().stream_id for _ in range(100)}
    assert len(pool) == 32
    assert high.device == taeda.device("cuda:0") and high.cuda_stream != 0


def test_query_sees_work_end() -> None:
    stream = cuda.Stream()
    with cuda.stream(stream):
        x = taeda.ones(10, device="cuda")
        for _ in range(5):
            x.add_(1)
    assert not stream.query()
    stream.synchronize()
    assert stream.query()


def test_copies_between_devices_wait() -> None:
    for _ in range(20):
        x = taeda.zeros(50, device="cuda:0")
        for _ in range(10):
            x.add_(1)
        y = x.to("cuda:1") + 1
        x.add_(100)
        assert y.device.index == 1
        assert y.cpu().unique().tolist() == [11]


def test_the_accelerator_is_the_gpu() -> None:
    accelerator = taeda.accelerator
    assert accelerator.is_available() and accelerator.device_count() == 2
    assert accelerator.current_accelerator() == taeda.device("cuda")
    assert accelerator.current_device_index() == 0
    with accelerator.device_index(1):
        assert cuda.current_device() == accelerator.current_device_index() == 1
    assert cuda.current_device() == 0
    stream = cuda.Stream(device=1)
    accelerator.set_stream(stream)
    try:
        assert cuda.current_device() == 1 and accelerator.current_stream() == stream
    finally:
        accelerator.set_stream(cuda.default_stream(1))
        accelerator.set_device_index(0)
    x = taeda.ones(1000, device="cuda")
    accelerator.synchronize()
    assert accelerator.memory_allocated() == cuda.memory_allocated() >= x.nbytes
    assert accelerator.get_memory_info() == cuda.mem_get_info()
    assert taeda.bfloat16 in accelerator.get_device_capability()["supported_dtypes"]
    assert cuda.is_tf32_supported() == (cuda.get_device_capability()[0] >= 8)
