"""Memory of devices: blocks, segments, peaks, running out of it."""

from __future__ import annotations

import gc
import sys
import types

import pytest
import taeda
from taeda import cuda

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_cached():
    gc.collect()  # errors that a test caught hold what their frames held
    cuda.synchronize()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    yield


def on_device(size: int, device: str = "cuda") -> taeda.Tensor:
    return taeda.empty(size, dtype=taeda.uint8, device=device)


def test_counts_follow_tensors() -> None:
    before = cuda.memory_allocated()
    x = on_device(1000)
    assert cuda.memory_allocated() - before == 1024
    stats = cuda.memory_stats()
    assert stats["requested_bytes.all.current"] >= 1000
    assert stats["allocation.small_pool.current"] >= 1
    del x
    assert cuda.memory_allocated() == before
    assert cuda.max_memory_allocated() >= before + 1024


def test_pinned_memory() -> None:
    x = taeda.arange(12.0).reshape(3, 4).t()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned()
    assert taeda.equal(pinned, x) and pinned.pin_memory() is pinned
    assert pinned[1:].is_pinned() and pinned.untyped_storage().is_pinned()
    there = pinned.to("cuda", non_blocking=True)
    back = taeda.empty_like(pinned).pin_memory()
    back.copy_(there, non_blocking=True)
    cuda.synchronize()
    assert taeda.equal(back, x)
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        there.pin_memory()
    y = taeda.ones(2, requires_grad=True)
    y.pin_memory().sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_pinned_memory_is_kept_until_copies_are_done() -> None:
    for value in range(5):
        source = taeda.full((1000,), float(value)).pin_memory()
        there = source.to("cuda", non_blocking=True)
        del source
        # The next block may be the same one.
        taeda.full((1000,), -1.0).pin_memory()
        assert there.unique().tolist() == [value]


def test_factories_pin() -> None:
    made = [
        taeda.ones(3, pin_memory=True),
        taeda.arange(5, pin_memory=True),
        taeda.empty(2, 3, pin_memory=True),
        taeda.tensor([1.0, 2.0], pin_memory=True, requires_grad=True),
        taeda.zeros_like(taeda.ones(2, 3).t(), pin_memory=True),
        taeda.ones(4).new_full((2,), 7.0, pin_memory=True),
        taeda.empty(0, pin_memory=True),
    ]
    assert all(t.is_pinned() and t.device.type == "cpu" for t in made[:-1])
    assert made[0].tolist() == [1, 1, 1] and made[1].tolist() == [0, 1, 2, 3, 4]
    assert made[3].tolist() == [1, 2] and made[3].requires_grad
    assert made[4].stride() == (1, 3) and made[5].tolist() == [7, 7]
    assert not taeda.ones(3, pin_memory=False).is_pinned()
    for make in (taeda.ones, taeda.empty):
        with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
            make(3, device="cuda", pin_memory=True)


def test_batches_are_pinned() -> None:
    data = taeda.utils.data.TensorDataset(taeda.arange(8.0))
    batches = taeda.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    assert all(batch[0].is_pinned() for batch in batches)


def test_freed_blocks_are_taken_again() -> None:
    first = on_device(5 * MIB)
    address = first.data_ptr()
    del first
    assert on_device(5 * MIB).data_ptr() == address


def test_neighbours_become_one_block() -> None:
    parts = [on_device(3 * MIB) for _ in range(4)]
    start = parts[0].data_ptr()
    assert [p.data_ptr() - start for p in parts] == [n * 3 * MIB for n in range(4)]
    del parts
    assert on_device(12 * MIB).data_ptr() == start


def test_segments_grow_rather_than_multiply() -> None:
    kept = [on_device(n * MIB) for n in (2, 30, 7, 55)]
    large = [s for s in cuda.memory_snapshot() if s["segment_type"] == "large"]
    mine = [s for s in large if s["device"] == 0]
    assert len(mine) == 1 and mine[0]["is_expandable"]
    assert mine[0]["allocated_size"] == sum(t.nbytes for t in kept)
    blocks = mine[0]["blocks"]
    assert sum(b["size"] for b in blocks) == mine[0]["total_size"]


def test_empty_cache_gives_pages_back() -> None:
    small = on_device(100)
    big = on_device(64 * MIB)
    reserved = cuda.memory_reserved()
    del big
    cuda.empty_cache()
    assert cuda.memory_reserved() <= reserved - 60 * MIB
    assert small.fill_(3).cpu().unique().tolist() == [3]


def test_streams_have_blocks_of_their_own() -> None:
    other = cuda.Stream()
    x = on_device(4 * MIB)
    address = x.data_ptr()
    del x
    with cuda.stream(other):
        assert on_device(4 * MIB).data_ptr() != address


def test_a_recorded_stream_keeps_the_block() -> None:
    other = cuda.Stream()
    x = on_device(4 * MIB).zero_()
    cuda.synchronize()
    address = x.data_ptr()
    with cuda.stream(other):
        for _ in range(50):
            x.add_(1)
    x.record_stream(other)
    del x
    assert on_device(4 * MIB).data_ptr() != address
    other.synchronize()
    assert on_device(4 * MIB).data_ptr() == address


def test_running_out_says_what_there_is() -> None:
    free, total = cuda.mem_get_info()
    with pytest.raises(cuda.OutOfMemoryError, match="Tried to allocate") as error:
        on_device(total + 1)
    text = str(error.value)
    assert "total capacity of 512.00 MiB" in text and "GPU 0" in text
    assert cuda.memory_stats()["num_ooms"] >= 1
    assert on_device(MIB).fill_(1).cpu().sum() == MIB


class Widening(taeda.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = taeda.nn.Linear(4, 1 << 20, device="cuda")

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        wide = self.up(x)
        return wide * 2


def test_running_out_says_who_holds_what() -> None:
    with taeda.no_grad():
        net = Widening()
        kept = [net(taeda.zeros(8, 4, device="cuda")) for _ in range(3)]
        with pytest.raises(cuda.OutOfMemoryError) as error:
            on_device(1 << 40)
    first, *places = str(error.value).split("\n")
    assert "would have fitted" in first
    assert "held by what was made at" in places[0]
    product = next(line for line in places if "wide * 2" in line)
    assert "96.00 MiB in 3 blocks" in product and "device_memory.py:" in product
    assert "in Widening.forward: wide * 2; in module Widening" in product
    weights = next(line for line in places if "Linear(4, 1 << 20" in line)
    assert "in Widening.__init__" in weights and "; operator " in weights
    blocks = [b for s in cuda.memory_snapshot() for b in s["blocks"]]
    frames = [b["frames"][0] for b in blocks if b["frames"]]
    assert any(f["name"] == "Widening.forward" for f in frames)
    assert all(t.numel() == 1 << 23 for t in kept)


def test_what_would_have_fitted_fits() -> None:
    kept = on_device(100 * MIB)
    with pytest.raises(cuda.OutOfMemoryError) as error:
        on_device(500 * MIB)
    said = str(error.value).split(" would have fitted")[0].rpartition(". ")[2]
    number, unit = said.split()
    assert unit == "MiB"
    size = int(float(number) * MIB)
    assert 300 * MIB < size < 420 * MIB
    assert on_device(size).numel() == size
    assert kept.numel() == 100 * MIB


def test_cached_memory_is_given_up_for_others() -> None:
    free, _ = cuda.mem_get_info()
    parts = [on_device(free // 4) for _ in range(3)]
    with cuda.stream(cuda.Stream()):
        del parts
        on_device(free // 2)
    assert cuda.memory_stats()["num_alloc_retries"] >= 1


def test_a_share_of_memory_is_a_limit() -> None:
    total = cuda.mem_get_info()[1]
    cuda.set_per_process_memory_fraction(0.25)
    try:
        with pytest.raises(cuda.OutOfMemoryError, match="allowed"):
            on_device(total // 2)
        assert cuda.memory.get_per_process_memory_fraction() == 0.25
        assert cuda.memory.get_per_process_memory_fraction(1) == 1.0
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    on_device(total // 2)
    with pytest.raises(ValueError, match="Allowed range"):
        cuda.set_per_process_memory_fraction(2.0)


def test_totals_begin_anew() -> None:
    on_device(MIB)
    assert cuda.memory_stats()["allocated_bytes.all.allocated"] >= MIB
    cuda.reset_accumulated_memory_stats()
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == stats["num_ooms"] == 0
    assert on_device(1000).numel() == 1000
    assert cuda.memory_stats()["allocated_bytes.all.allocated"] == 1024


def test_each_device_counts_by_itself() -> None:
    before = cuda.memory_allocated(0)
    x = on_device(7 * MIB, "cuda:1")
    assert cuda.memory_allocated(0) == before
    assert cuda.memory_allocated(1) >= 7 * MIB
    assert x.device == taeda.device("cuda:1")


def test_storages_grow_on_the_device() -> None:
    x = taeda.arange(6.0).cuda()
    x.untyped_storage().resize_(48)
    y = x.new_empty(0).set_(x.untyped_storage(), 0, (12,))
    y[6:] = 1
    assert y.cpu().tolist() == [0, 1, 2, 3, 4, 5, 1, 1, 1, 1, 1, 1]


def test_a_summary_names_the_counts() -> None:
    text = cuda.memory_summary()
    assert "allocated_bytes" in text and "GiB" not in text.split("\n")[0]


def test_sensors_are_those_of_the_device(monkeypatch) -> None:
    """By a stand-in of `pynvml`: devices are named by their identity."""
    asked = []
    rates = types.SimpleNamespace(gpu=7, memory=3)
    nvml = types.SimpleNamespace(
        NVMLError_DriverNotLoaded=OSError,
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: asked.append(uuid) or uuid,
        nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(used=11),
        nvmlDeviceGetUtilizationRates=lambda handle: rates,
        nvmlDeviceGetTemperature=lambda handle, sensor: 40 + sensor,
        nvmlDeviceGetPowerUsage=lambda handle: 70000,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1000 + kind,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    cuda = taeda.cuda
    found = [
        f(1)
        for f in (
            *(cuda.device_memory_used, cuda.memory_usage, cuda.utilization),
            *(cuda.temperature, cuda.power_draw, cuda.clock_rate),
        )
    ]
    assert found == [11, 3, 7, 40, 70000, 1001]
    assert len(set(asked)) == 1 and asked[0].startswith("GPU-")
    assert asked[0] == f"GPU-{cuda.get_device_properties(1).uuid}"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ModuleNotFoundError, match="pynvml does not seem"):
        cuda.utilization()
