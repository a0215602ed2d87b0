"""Pools of memory, settings of the allocator, what it keeps and what it tells."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import taeda
from taeda import cuda

MIB = 1 << 20

# Functions for CUDAPluggableAllocator, over the driver in use.
PLUG_IN = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
static void* driver() { return dlopen(getenv("TAEDA_CUDA_DRIVER"), RTLD_NOW); }
static long counts[2];
extern "C" void* take(ssize_t size, int device, void* stream) {
  typedef int (*Allocate)(unsigned long long*, size_t);
  unsigned long long at = 0;
  ((Allocate)dlsym(driver(), "cuMemAlloc_v2"))(&at, size);
  ++counts[0];
  return (void*)at;
}
extern "C" void give(void* at, ssize_t size, int device, void* stream) {
  typedef int (*Free)(unsigned long long);
  ((Free)dlsym(driver(), "cuMemFree_v2"))((unsigned long long)at);
  ++counts[1];
}
extern "C" long count(int which) { return counts[which]; }
"""


@pytest.fixture(autouse=True)
def nothing_cached():
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    yield


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("plug_in")
    source, library = folder / "plug_in.cpp", folder / "plug_in.so"
    source.write_text(PLUG_IN)
    compiler = os.environ.get("CXX", "g++")
    flags = ["-shared", "-fPIC", "-w", str(source), "-o", str(library), "-ldl"]
    subprocess.run([compiler, *flags], check=True)
    return str(library)


def on_device(size: int) -> taeda.Tensor:
    return taeda.empty(size, dtype=taeda.uint8, device="cuda")


def python(text: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", text]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_a_pool_keeps_its_memory_apart() -> None:
    pool = cuda.MemPool()
    assert pool.use_count() == 1
    with cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = on_device(4 * MIB)
    outside = on_device(4 * MIB)
    assert pool.use_count() == 1
    (segment,) = pool.snapshot()
    begin = segment["address"]
    end = begin + segment["total_size"]
    assert segment["segment_pool_id"] == pool.id != (0, 0)
    assert begin <= inside.data_ptr() < end
    assert not begin <= outside.data_ptr() < end
    address = inside.data_ptr()
    del inside
    assert on_device(4 * MIB).data_ptr() != address
    with cuda.use_mem_pool(pool):
        assert on_device(4 * MIB).data_ptr() == address


def test_a_pool_goes_when_nobody_uses_it() -> None:
    before = cuda.memory_reserved()
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        kept = on_device(30 * MIB)
        cuda.empty_cache()
        del kept
    reserved = cuda.memory_reserved()
    cuda.empty_cache()  # what a pool has cached is its own
    assert cuda.memory_reserved() == reserved >= before + 30 * MIB
    del pool
    assert cuda.memory_reserved() == before


def test_tensors_outlive_their_pool() -> None:
    before = cuda.memory_reserved()
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        x = taeda.full((1 << 20,), 7.0, device="cuda")
    del pool
    assert x.cpu().unique().tolist() == [7]
    del x
    cuda.empty_cache()
    assert cuda.memory_reserved() == before


def test_pools_are_a_threads_own() -> None:
    import threading

    pool = cuda.MemPool()
    made = []
    with cuda.use_mem_pool(pool):
        thread = threading.Thread(target=lambda: made.append(on_device(2 * MIB)))
        thread.start()
        thread.join()
    assert pool.snapshot() == [] and len(made) == 1


def test_a_lent_pool_is_taken_when_nothing_else_is_left() -> None:
    free = cuda.mem_get_info()[0]
    pool, kept = cuda.MemPool(use_on_oom=True), cuda.MemPool()
    with cuda.use_mem_pool(pool):
        on_device(free // 2)
    with cuda.use_mem_pool(kept):
        on_device(free // 4)
    taken = on_device(free * 2 // 5)
    segment = pool.snapshot()[0]
    begin = segment["address"]
    assert begin <= taken.data_ptr() < begin + segment["total_size"]
    with pytest.raises(cuda.OutOfMemoryError):
        on_device(free // 4)


def test_blocks_of_a_pool_may_stay_whole() -> None:
    pool = cuda.MemPool(no_split=True)
    with cuda.use_mem_pool(pool):
        x = on_device(3 * MIB)
        del x
        small = on_device(2 * MIB)
    (segment,) = pool.snapshot()
    assert [b["size"] for b in segment["blocks"]] == [3 * MIB]
    assert small.data_ptr() == segment["address"]


def test_a_pool_of_another_allocator(plug_in: str) -> None:
    import ctypes

    count = ctypes.CDLL(plug_in).count
    allocator = cuda.memory.CUDAPluggableAllocator(plug_in, "take", "give")
    pool = cuda.MemPool(allocator.allocator())
    with cuda.use_mem_pool(pool):
        x = taeda.arange(1 << 20, device="cuda")
        assert (x + 1).cpu()[-1] == 1 << 20
    assert count(0) == 1 and count(1) == 0
    assert not any(s["is_expandable"] for s in pool.snapshot())
    del x, pool
    assert count(1) == 1
    with pytest.raises(AttributeError, match="nothing_of_it"):
        cuda.memory.CUDAPluggableAllocator(plug_in, "nothing_of_it", "give")
    with pytest.raises(OSError, match="nowhere"):
        cuda.memory.CUDAPluggableAllocator("/nowhere.so", "take", "give")


def test_another_allocator_instead_of_ours(plug_in: str) -> None:
    text = f"""
import ctypes, taeda
from taeda import cuda
count = ctypes.CDLL({plug_in!r}).count
assert cuda.memory.get_allocator_backend() == "native"
allocator = cuda.memory.CUDAPluggableAllocator({plug_in!r}, "take", "give")
cuda.memory.change_current_allocator(allocator)
assert cuda.memory.get_allocator_backend() == "pluggable"
x = taeda.arange(5.0, device="cuda")
assert (x * 2).cpu().tolist() == [0, 2, 4, 6, 8]
assert count(0) >= 2 and count(1) == count(0) - 1, (count(0), count(1))
del x
assert count(1) == count(0)
cuda.empty_cache()
try:
    cuda.memory_stats()
except NotImplementedError as error:
    print("memory_stats" in str(error))
"""
    done = python(text)
    assert done.stdout == "True\n", done.stderr
    on_device(1)
    allocator = cuda.memory.CUDAPluggableAllocator(plug_in, "take", "give")
    with pytest.raises(RuntimeError, match="memory was taken already"):
        cuda.memory.change_current_allocator(allocator)


def test_pages_amid_a_segment_go_back() -> None:
    parts = [on_device(25 * MIB) for _ in range(6)]
    marks = [taeda.full((8,), float(i), device="cuda") for i in range(6)]
    reserved = cuda.memory_reserved()
    parts[1] = parts[2] = parts[3] = None
    cuda.empty_cache()
    assert cuda.memory_reserved() == reserved - 60 * MIB  # three pages of 20 MiB
    large = [s for s in cuda.memory_snapshot() if s["segment_type"] == "large"]
    (segment,) = (s for s in large if s["device"] == 0)
    sizes = sum(b["size"] for b in segment["blocks"])
    assert sizes == segment["total_size"] < 6 * 25 * MIB
    # The hole is filled before the segment grows.
    again = on_device(55 * MIB).fill_(3)
    begin = parts[0].data_ptr()
    assert begin < again.data_ptr() < parts[4].data_ptr()
    assert cuda.memory_reserved() <= reserved
    assert again.cpu().unique().tolist() == [3]
    assert [int(m[0]) for m in marks] == list(range(6))
    del parts, again
    cuda.empty_cache()
    assert not any(
        s["segment_type"] == "large" and s["device"] == 0
        for s in cuda.memory_snapshot()
    )


def test_pages_amid_a_segment_serve_other_streams() -> None:
    free = cuda.mem_get_info()[0]
    parts = [on_device(free // 6) for _ in range(5)]
    parts[1] = parts[2] = None
    with cuda.stream(cuda.Stream()):
        there = on_device(free // 4).fill_(1)
        assert there.cpu().sum() == free // 4
    assert cuda.memory_stats()["num_alloc_retries"] >= 1
    assert parts[0] is not None


def test_old_free_blocks_are_collected() -> None:
    total = cuda.mem_get_info()[1]
    cuda.memory._set_allocator_settings("garbage_collection_threshold:0.5")
    try:
        with cuda.stream(cuda.Stream()):
            on_device(total * 2 // 5)
        retries = cuda.memory_stats()["num_alloc_retries"]
        kept = on_device(total // 4)
        assert cuda.memory_reserved() < total // 2
        assert cuda.memory_stats()["num_alloc_retries"] == retries
        assert kept.numel() == total // 4
    finally:
        cuda.memory._set_allocator_settings("")


def test_settings_act_or_refuse() -> None:
    settings = cuda.memory._set_allocator_settings
    try:
        settings("roundup_power2_divisions:4,max_split_size_mb:64")
        assert cuda.memory_stats()["max_split_size"] == 64 * MIB
        before = cuda.memory_allocated()
        x = on_device(9 * MIB)
        assert cuda.memory_allocated() - before == 10 * MIB
        settings("roundup_power2_divisions:[4:1,16:2,>:1]")
        y = on_device(9 * MIB)
        assert cuda.memory_allocated() - before == 22 * MIB
        assert x.numel() == y.numel()
        settings("release_lock_on_cudamalloc:False, backend:native")
        for text, error, said in (
            ("no_such_option:1", RuntimeError, "Unrecognized.*no_such_option"),
            ("backend:cudaMallocAsync", NotImplementedError, "cudaMallocAsync"),
            ("pinned_use_background_threads:True", NotImplementedError, "pinned_use"),
            ("expandable_segments:maybe", ValueError, "True or False, got 'maybe'"),
            ("garbage_collection_threshold:7", ValueError, "share above 0"),
            ("max_split_size_mb:many", ValueError, "number, got 'many'"),
            ("roundup_power2_divisions:3", ValueError, "power of two"),
        ):
            with pytest.raises(error, match=said):
                settings(text)
    finally:
        settings("")
    assert cuda.memory_stats()["max_split_size"] == -1


def test_settings_of_the_environment() -> None:
    text = """
import taeda
x = taeda.zeros(1 << 20, device="cuda")
snapshot = taeda.cuda.memory._snapshot()
print([s["is_expandable"] for s in snapshot["segments"]])
print(snapshot["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"])
print(taeda.cuda.memory.get_per_process_memory_fraction())
"""
    given = "expandable_segments:False,per_process_memory_fraction:0.5"
    done = python(text, PYTORCH_CUDA_ALLOC_CONF=given)
    assert done.stdout == f"[False]\n{given}\n0.5\n", done.stderr
    done = python(text, PYTORCH_CUDA_ALLOC_CONF="wrong:1")
    assert "Unrecognized CUDA memory option: wrong" in done.stderr


def test_stats_have_pytorchs_keys() -> None:
    x = on_device(2 * MIB)
    stats = cuda.memory_stats()
    pooled = (
        "allocation segment active inactive_split allocated_bytes reserved_bytes"
        " active_bytes inactive_split_bytes requested_bytes"
    )
    measures = "current peak allocated freed".split()
    for name in pooled.split():
        for pool in ("all", "small_pool", "large_pool"):
            assert all(f"{name}.{pool}.{m}" in stats for m in measures)
    for name in ("oversize_allocations", "oversize_segments"):
        assert all(f"{name}.{m}" in stats for m in measures)
    counts = "alloc_retries ooms sync_all_streams device_alloc device_free"
    assert all(f"num_{name}" in stats for name in counts.split())
    for unit in ("", "_bytes"):
        parts = [f"{n}{unit}.all.current" for n in ("active", "inactive_split")]
        assert all(stats[p] > 0 for p in parts)
    whole = stats["active_bytes.all.current"]
    whole += stats["inactive_split_bytes.all.current"]
    assert whole == stats["reserved_bytes.all.current"]
    assert x.numel() == 2 * MIB


def test_the_history_tells_what_happened(tmp_path: Path) -> None:
    cuda.memory._record_memory_history(max_entries=100)
    try:
        x = on_device(3 * MIB)
        small = on_device(100)
        address = x.data_ptr()
        assert cuda.memory._allocation_traceback(small.data_ptr())[0]["name"]
        del x
        cuda.empty_cache()
        with pytest.raises(cuda.OutOfMemoryError):
            on_device(1 << 40)
        file = tmp_path / "snapshot.pickle"
        cuda.memory._dump_snapshot(str(file))
    finally:
        cuda.memory._record_memory_history(enabled=None)
    snapshot = pickle.loads(file.read_bytes())
    first, second = snapshot["device_traces"]
    actions = [entry["action"] for entry in first]
    for wanted in ("alloc", "segment_map", "segment_unmap", "oom"):
        assert wanted in actions
    mine = [
        e for e in first if e.get("addr") == address and "segment" not in e["action"]
    ]
    assert [e["action"] for e in mine] == [
        "alloc",
        "free_requested",
        "free_completed",
    ]
    assert mine[0]["size"] == 3 * MIB and mine[0]["stream"] == 0
    names = [frame["name"] for frame in mine[0]["frames"]]
    assert "test_the_history_tells_what_happened" in names
    assert second == [] and "addr" not in first[-1]
    assert cuda.memory._snapshot()["device_traces"] == [[], []]
    with pytest.raises(NotImplementedError, match="compile_context"):
        cuda.memory._record_memory_history(compile_context=True)


def test_locked_pages_are_kept_and_given_back() -> None:
    cuda.memory.reset_peak_host_memory_stats()
    empty = taeda._C._host_emptyCache
    empty()
    before = cuda.memory.host_memory_stats()
    x = taeda.ones(5000).pin_memory()
    stats = cuda.host_memory_stats()
    assert stats["active_requests.current"] == before["active_requests.current"] + 1
    assert stats["active_bytes.current"] - before["active_bytes.current"] == 32768
    assert stats["num_host_alloc"] == before["num_host_alloc"] + 1
    assert stats["host_alloc_time.count"] >= 1
    address = x.data_ptr()
    del x
    y = taeda.ones(5000).pin_memory()
    assert y.data_ptr() == address
    assert cuda.host_memory_stats()["num_host_alloc"] == stats["num_host_alloc"]
    del y
    empty()
    stats = cuda.host_memory_stats()
    assert stats["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert stats["num_host_free"] == before["num_host_free"] + 1
    cuda.memory.reset_accumulated_host_memory_stats()
    assert cuda.host_memory_stats()["num_host_alloc"] == 0


def test_locked_pages_wait_for_their_stream_alone() -> None:
    busy, other = cuda.Stream(), cuda.Stream()
    with cuda.stream(other):
        work = taeda.zeros(100, device="cuda")
        for _ in range(30):
            work.add_(1)
    source = taeda.full((1000,), 5.0).pin_memory()
    address = source.data_ptr()
    with cuda.stream(busy):
        there = source.to("cuda", non_blocking=True)
    del source
    assert taeda.ones(1000).pin_memory().data_ptr() != address
    assert not other.query()  # nobody waited for it
    busy.synchronize()
    held = [taeda.ones(1000).pin_memory() for _ in range(8)]
    assert address in {block.data_ptr() for block in held}
    assert there.cpu().unique().tolist() == [5]
    other.synchronize()
    assert work.cpu().unique().tolist() == [30]


def test_blocks_for_other_libraries() -> None:
    before = cuda.memory_allocated()
    address = cuda.caching_allocator_alloc(5000)
    assert cuda.memory_allocated() - before == 5120
    cuda.caching_allocator_delete(address)
    assert cuda.memory_allocated() == before
    with pytest.raises(RuntimeError, match="no block begins at"):
        cuda.caching_allocator_delete(address)
    with pytest.raises(TypeError, match="stream"):
        cuda.caching_allocator_alloc(8, stream="main")


class Layer(taeda.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = taeda.nn.Parameter(taeda.ones(size, device="cuda"))

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return x * self.weight


class Tower(taeda.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Layer(1 << 19)
        self.layers = taeda.nn.ModuleList(Layer(1 << 19) for _ in range(3))

    def forward(self, x: taeda.Tensor) -> list[taeda.Tensor]:
        return [self.first(x), *(layer(x) for layer in self.layers)]


def test_running_out_names_submodules() -> None:
    with taeda.no_grad():
        tower = Tower()
        kept = tower(taeda.ones(1 << 19, device="cuda"))
        with pytest.raises(cuda.OutOfMemoryError) as error:
            on_device(1 << 40)
    text = str(error.value)
    assert "in module Tower.first (Layer)" in text
    for number in range(3):
        assert f"in module Tower.layers.{number} (Layer)" in text
    assert len(kept) == 4


def test_a_summary_is_a_table() -> None:
    x = on_device(1000)
    text = cuda.memory_summary()
    assert "inactive_split_bytes" in text and "oversize_allocations" in text
    assert x.numel() == 1000
