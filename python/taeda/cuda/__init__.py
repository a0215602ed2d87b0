"""NVIDIA GPUs. This build has no CUDA library, and says so truthfully."""

from __future__ import annotations

from taeda import _C
from taeda._lazy import attributes

__all__ = [
    "OutOfMemoryError",
    "current_device",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
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
    "memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "synchronize",
]
OutOfMemoryError = _C.OutOfMemoryError
_TENSORS = "Double Float Half BFloat16 Long Int Short Char Byte Bool".split()
_MEMORY = (
    "caching_allocator_alloc caching_allocator_delete change_current_allocator"
    " get_allocator_backend get_per_process_memory_fraction host_memory_stats"
    " host_memory_stats_as_nested_dict max_memory_cached memory_cached memory_snapshot"
    " memory_stats_as_nested_dict memory_summary reset_accumulated_host_memory_stats"
    " reset_accumulated_memory_stats reset_max_memory_cached"
    " reset_peak_host_memory_stats set_per_process_memory_fraction"
)
__getattr__ = attributes(
    __name__,
    {f"{kind}Tensor": "._compat.cuda_types" for kind in _TENSORS}
    | dict.fromkeys(_MEMORY.split(), "memory"),
    ("amp", "comm", "memory", "nccl", "nvtx", "profiler", "random", "streams"),
)
default_generators: tuple = ()
has_magma = False


def _no_device(*args, **kwargs):
    raise AssertionError("Taeda not compiled with CUDA enabled: no GPU can be used")


def is_available() -> bool:
    """False: this build has no GPU. So nothing is set up, computes in TF32 or records
    a graph either."""
    return False


is_initialized = is_tf32_supported = is_current_stream_capturing = is_available


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return is_available()


def get_arch_list() -> list[str]:
    """The GPUs that this build was compiled for."""
    return []


def get_gencode_flags() -> str:
    """The flags with which it was compiled for them."""
    return ""


def device_count() -> int:
    """The number of GPUs that can be used."""
    return 0


def empty_cache() -> None:
    """Give cached GPU memory back; there is none."""


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator, once there is one."""


manual_seed_all = manual_seed


def memory_allocated(device=None) -> int:
    """Bytes of GPU memory in use."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device=None) -> None:
    """Restart the count of the largest memory use."""


def get_rng_state_all() -> list:
    """The states of all GPUs' generators."""
    return []


def set_rng_state_all(new_states) -> None:
    """States for the generators of GPUs: they wait for GPUs to be set up, which never
    happens on this build, as in PyTorch."""


mem_get_info = _no_device
reset_max_memory_allocated = reset_peak_memory_stats
init = current_device = set_device = synchronize = _no_device
get_device_name = get_device_capability = get_device_properties = _no_device
get_rng_state = set_rng_state = initial_seed = seed = seed_all = _no_device
current_stream = default_stream = set_stream = get_stream_from_external = _no_device
can_device_access_peer = cudart = ipc_collect = graph_pool_handle = _no_device
current_blas_handle = current_solver_handle = _no_device
get_sync_debug_mode = set_sync_debug_mode = _no_device
clock_rate = device_memory_used = memory_usage = power_draw = _no_device
temperature = utilization = make_graphed_callables = _no_device


class Stream:
    """A queue of work on a GPU; none can be made."""

    def __init__(self, *args, **kwargs) -> None:
        _no_device()


class Event:
    """A mark in such a queue; none can be made."""

    def __init__(self, *args, **kwargs) -> None:
        _no_device()


class device:
    """Makes a GPU the current one inside `with`; -1 and None leave all as it is."""

    def __init__(self, device) -> None:
        index = -1 if device is None else device
        if index != -1:
            _no_device()

    def __enter__(self) -> None:
        return None

    def __exit__(self, type, value, traceback) -> None:
        return None


class device_of(device):
    """Makes the GPU of a tensor the current one inside `with`."""

    def __init__(self, obj) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def stream(stream):
    """A context in which a stream is the current one; None changes nothing.

    Raises:
        AssertionError: a stream, for there is no GPU.
    """
    from contextlib import nullcontext

    return nullcontext() if stream is None else _no_device()


def memory_stats(device=None) -> dict:
    """Counts of GPU memory, of which none is used."""
    return {}
