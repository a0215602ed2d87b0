"""Modules of devices that are not there say what PyTorch's CPU build says."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import pytest
import taeda

torch = importlib.import_module("torch")

TRUTHS = """
accelerator.is_available accelerator.device_count accelerator.current_accelerator
cuda.is_available cuda.device_count cuda.memory_allocated cuda.memory_reserved
cuda.memory.memory_stats cuda.memory.memory_stats_as_nested_dict cuda.get_arch_list
cuda.memory.host_memory_stats cuda.host_memory_stats_as_nested_dict
cuda.get_gencode_flags cuda.is_tf32_supported cuda.random.get_rng_state_all
cuda.max_memory_allocated cuda.amp.common.amp_definitely_not_available
xpu.memory_stats xpu.get_arch_list xpu.get_gencode_flags xpu.is_tf32_supported
backends.cuda.is_ck_sdpa_available
""".split()
REFUSALS = """
accelerator.current_device_index accelerator.empty_cache accelerator.memory_allocated
accelerator.current_stream accelerator.get_memory_info accelerator.synchronize
cuda.current_device cuda.current_stream cuda.cudart cuda.ipc_collect
cuda.get_sync_debug_mode cuda.current_blas_handle cuda.memory.mem_get_info
cuda.memory.get_per_process_memory_fraction cuda.random.initial_seed
cuda.nvtx.range_pop
""".split()


def found(library, path: str):
    value = library
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("path", TRUTHS)
def test_answers_are_those_of_a_cpu_build(path) -> None:
    assert found(taeda, path)() == found(torch, path)()


@pytest.mark.parametrize("path", REFUSALS)
def test_errors_are_those_of_a_cpu_build(path) -> None:
    with pytest.raises(Exception) as real:
        found(torch, path)()
    with pytest.raises(type(real.value)) as ours:
        found(taeda, path)()
    assert type(ours.value) is type(real.value)


def test_modules_import_by_name() -> None:
    names = "memory random streams nvtx profiler comm nccl amp.common amp.autocast_mode"
    for name in [*names.split(), "amp.grad_scaler"]:
        module = importlib.import_module(f"taeda.cuda.{name}")
        assert found(taeda.cuda, name) is module
        real = importlib.import_module(f"torch.cuda.{name}")
        assert [n for n in module.__all__ if not hasattr(real, n)] == []
    assert taeda.cuda.memory.memory_allocated is taeda.cuda.memory_allocated
    assert taeda.cuda.memory_summary is taeda.cuda.memory.memory_summary
    assert taeda.cuda.streams.Stream is taeda.cuda.Stream
    with pytest.raises(AssertionError, match="CUDA enabled"):
        taeda.cuda.memory_summary()
    with pytest.raises(AssertionError, match="CUDA enabled"):
        taeda.cuda.comm.broadcast(taeda.ones(1), [0])
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert taeda.cuda.memory_cached() == 0


def test_ranges_need_cuda() -> None:
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        with taeda.cuda.nvtx.range("step {}", 1):
            raise AssertionError("the block must not run")
    with pytest.raises(AssertionError, match="CUDA enabled"):
        with taeda.cuda.profiler.profile():
            raise ValueError("the block must not run")


def test_blocks_of_no_device_change_nothing() -> None:
    with taeda.cuda.device_of(taeda.ones(1)), taeda.cuda.device(-1):
        pass
    with taeda.xpu.device(None), taeda.accelerator.device_index(None):
        pass
    with pytest.raises(RuntimeError, match="none is available"):
        with taeda.accelerator.device_index(0):
            pass
    with pytest.raises(AssertionError, match="XPU enabled"):
        taeda.xpu.device(0)


def test_streams_of_the_cpu_are_per_thread() -> None:
    first, other = taeda.cpu.current_stream(), taeda.cpu.Stream()
    seen = []
    with taeda.cpu.stream(other):
        assert taeda.cpu.current_stream() is other
        with taeda.cpu.stream(None):
            assert taeda.cpu.current_stream() is other
        thread = threading.Thread(
            target=lambda: seen.append(taeda.cpu.current_stream())
        )
        thread.start()
        thread.join()
    assert seen == [first] and taeda.cpu.current_stream() is first
    assert taeda.cpu.Event().query() is True


def test_kernels_of_cuda_compute_no_attention() -> None:
    cuda = taeda.backends.cuda
    x = taeda.ones(1, 2, 3, 4)
    params = cuda.SDPAParams(x, x, x, None, 0.0, False, False)
    assert params.query is x and params.enable_gqa is False
    for name in ("flash", "efficient", "cudnn"):
        can_use = getattr(cuda, f"can_use_{name}_attention")
        assert can_use(params) is False
        with pytest.warns(UserWarning, match=name):
            can_use(params, debug=True)
    assert cuda.SDPBackend is taeda.nn.attention.SDPBackend
    assert taeda.backends.mps.is_macos_or_newer(13, 0) is (sys.platform == "darwin")


def test_nothing_of_this_loads_at_import() -> None:
    text = "import sys, taeda; print([m for m in sys.modules if 'taeda.cuda' in m])"
    command = [sys.executable, "-c", text]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert printed.stdout == "[]\n"
