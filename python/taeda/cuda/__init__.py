"""NVIDIA GPUs: devices, streams, memory.

Nothing is loaded until a GPU is asked for. Where there is none, `is_available()` says
so, and what needs one raises AssertionError with what is missing.
"""

from __future__ import annotations

from taeda import _C
from taeda._lazy import attributes
from taeda.cuda._devices import (
    _CudaDeviceProperties,  # noqa: F401 (programs compare types with it)
    _driver,
    _is_in_bad_fork,  # noqa: F401 (what starts processes asks it)
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_initialized,
    set_device,
    synchronize,
)

__all__ = [
    "OutOfMemoryError",
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "synchronize",
]
OutOfMemoryError = _C.OutOfMemoryError
_TENSORS = "Double Float Half BFloat16 Long Int Short Char Byte Bool".split()
_STORAGES = [*_TENSORS, "ComplexDouble", "ComplexFloat"]
_MEMORY = (
    "caching_allocator_alloc caching_allocator_delete empty_cache"
    " get_allocator_backend get_per_process_memory_fraction"
    " host_memory_stats host_memory_stats_as_nested_dict max_memory_allocated"
    " max_memory_cached max_memory_reserved mem_get_info memory_allocated"
    " memory_cached memory_reserved memory_snapshot memory_stats"
    " memory_stats_as_nested_dict memory_summary"
    " reset_accumulated_host_memory_stats reset_accumulated_memory_stats"
    " reset_max_memory_allocated reset_max_memory_cached"
    " reset_peak_host_memory_stats reset_peak_memory_stats"
    " set_per_process_memory_fraction"
)
_POOLS = (
    "CUDAPluggableAllocator MemPool caching_allocator_disabled"
    " caching_allocator_enable change_current_allocator list_gpu_processes"
    " use_mem_pool"
)
_GRAPHS = (
    "CUDAGraph GreenContext graph graph_pool_handle is_current_stream_capturing"
    " make_graphed_callables"
)
_STREAMS = (
    "Event ExternalStream Stream StreamContext current_stream default_stream"
    " set_stream stream"
)
_ABSENT = (
    "cudart current_blas_handle current_solver_handle get_stream_from_external"
    " get_sync_debug_mode set_sync_debug_mode"
)
_SENSORS = (
    "clock_rate device_memory_used memory_usage power_draw temperature utilization"
)
_RANDOM = (
    "default_generators get_rng_state get_rng_state_all initial_seed manual_seed"
    " manual_seed_all seed seed_all set_rng_state set_rng_state_all"
)
_MODULES = (
    "amp comm graphs jiterator memory nccl nvtx profiler random sparse streams tunable"
)
__getattr__ = attributes(
    __name__,
    {f"{kind}Tensor": "._compat.cuda_types" for kind in _TENSORS}
    | {f"{kind}Storage": "._compat.cuda_types" for kind in _STORAGES}
    | dict.fromkeys(_POOLS.split(), "memory")
    | dict.fromkeys(_GRAPHS.split(), "graphs")
    | {"ipc_collect": ".multiprocessing._cuda_sharing"}
    | dict.fromkeys(_MEMORY.split(), "memory")
    | dict.fromkeys(_STREAMS.split(), "streams")
    | dict.fromkeys(_SENSORS.split(), "_sensors")
    | dict.fromkeys(_RANDOM.split(), "random"),
    tuple(_MODULES.split()),
)
has_magma = False
has_half = True
_lazy_init = init


def _absent(name: str):
    """A function that needs a GPU, and that is not there yet."""

    def refuse(*args, **kwargs):
        _driver()
        raise NotImplementedError(f"cuda.{name} is not there yet")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises NotImplementedError; AssertionError without a GPU."
    return refuse


globals().update((name, _absent(name)) for name in _ABSENT.split())


class CudaError(RuntimeError):
    """A failure that CUDA's runtime reports, by its number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA's runtime reports error ({code})")


class DeferredCudaCallError(Exception):
    """A call that waited for CUDA to be set up has failed."""


class cudaStatus:
    """Numbers that CUDA's runtime returns."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


def check_error(res: int) -> None:
    """Raises CudaError for a number that is not `cudaStatus.SUCCESS`."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def is_tf32_supported() -> bool:
    """Whether the GPU computes products in TF32 (from compute capability 8.0 on)."""
    return is_available() and get_device_capability()[0] >= 8


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16 (from compute capability 8.0 on), or can
    compute in float32 instead."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The GPUs that this build was compiled for: none, kernels are compiled when they
    are first used."""
    return []


def get_gencode_flags() -> str:
    """The flags with which it was compiled for them."""
    return ""
