"""The small modules of utils do what their names say."""

from __future__ import annotations

import copy
import gc
import importlib
import subprocess
import sys
import threading
import time

import pytest
import taeda
from taeda.utils import collect_env, file_baton, model_zoo, throughput_benchmark, weak


def test_model_zoo_is_the_hubs() -> None:
    assert model_zoo.load_url is taeda.hub.load_state_dict_from_url


def test_a_baton_has_one_owner(tmp_path) -> None:
    path = tmp_path / "baton"
    first, second = (file_baton.FileBaton(path, 0.01, 0.02) for _ in range(2))
    assert first.try_acquire() and not second.try_acquire()
    timer = threading.Timer(0.1, first.release)
    timer.start()
    start = time.monotonic()
    with pytest.warns(UserWarning, match="Waited on lock file"):
        second.wait()
    assert time.monotonic() - start > 0.05
    timer.join()
    assert second.try_acquire()
    second.release()
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        second.release()


def test_throughput_of_threads() -> None:
    calls: list[tuple[int, int]] = []

    def module(x, y=0):
        assert not taeda.is_grad_enabled()
        calls.append((x, y))
        time.sleep(0.001)

    bench = taeda.utils.ThroughputBenchmark(module)
    with pytest.raises(RuntimeError, match="no inputs"):
        bench.benchmark()
    bench.add_input(1)
    bench.add_input(2, y=3)
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=3, num_iters=21)
    assert len(calls) == 2 * 3 + 21 and set(calls) == {(1, 0), (2, 3)}
    assert stats.num_iters == 21 and stats.latency_avg_ms >= 1
    assert stats.iters_per_second < 2000
    assert "Total number of iterations: 21" in str(stats)
    with pytest.raises(NotImplementedError, match="profiler"):
        bench.benchmark(profiler_output_path="there")
    real = importlib.import_module("torch.utils.throughput_benchmark")
    for given in ({"time_us": 5}, {"time_ms": 5}, {"time_s": 0.25}, {"time_s": 90}):
        ours = throughput_benchmark.format_time(**given)
        assert ours == real.format_time(**given)


def test_dicts_of_weak_tensors() -> None:
    a, b = taeda.ones(2), taeda.ones(2)
    table = weak.WeakTensorKeyDictionary({a: 1})
    table[b] = 2
    assert table[a] == 1 and table[b] == 2 and len(table) == 2
    assert a in table and taeda.ones(2) not in table and 3 not in table
    assert {id(k): v for k, v in table.items()} == {id(a): 1, id(b): 2}
    again, deep = table.copy(), copy.deepcopy(table)
    assert again == table and deep == table
    reference = weak.TensorWeakRef(a)
    assert reference() is a
    assert weak.WeakIdRef(a) == weak.WeakIdRef(a) != weak.WeakIdRef(b)
    del a
    gc.collect()
    assert reference() is None and len(table) == len(again) == len(deep) == 1
    assert list(table.values()) == [2]
    assert table.pop(b) == 2 and not table
    with pytest.raises(AssertionError, match="expected Tensor"):
        weak.TensorWeakRef(1)


def test_the_environment_is_told() -> None:
    real = importlib.import_module("torch.utils.collect_env")
    assert collect_env.SystemEnv._fields == real.SystemEnv._fields
    ours, theirs = collect_env.get_env_info(), real.get_env_info()
    for name in ("gcc_version", "python_platform", "libc_version", "cpu_info", "os"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.torch_version == taeda.__version__
    assert f"taeda=={taeda.__version__}" not in ours.cpu_info
    command = [sys.executable, "-m", "taeda.utils.collect_env"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = printed.splitlines()
    assert lines[0] == "Collecting environment information..."
    assert lines[1] == f"Taeda version: {taeda.__version__}"
    assert any(line.startswith("[pip3] numpy==") for line in lines)


def test_functional_has_the_class_of_its_tensors() -> None:
    assert taeda.functional.Tensor is taeda.Tensor
