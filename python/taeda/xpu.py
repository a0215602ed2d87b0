"""Intel's GPUs, which this build does not use."""

from __future__ import annotations

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "memory_allocated",
]


def is_available() -> bool:
    """Whether a GPU can be used: not in this build."""
    return False


def is_initialized() -> bool:
    """Whether the devices have been set up: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return False


def device_count() -> int:
    """The number of GPUs that can be used."""
    return 0


def empty_cache() -> None:
    """Gives cached memory back; there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's generator, once there is one."""


manual_seed_all = manual_seed


def memory_allocated(device=None) -> int:
    """Bytes of GPU memory in use."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device=None) -> None:
    """Restarts the count of the largest memory use."""


def _no_device(*args, **kwargs):
    raise AssertionError("Taeda not compiled with XPU enabled: no GPU can be used")


current_device = set_device = synchronize = get_device_name = _no_device
get_device_properties = get_device_capability = mem_get_info = _no_device
get_rng_state = set_rng_state = current_stream = _no_device


class Stream:
    """A queue of work on a GPU; none can be made."""

    def __init__(self, *args, **kwargs) -> None:
        _no_device()


class Event(Stream):
    """A mark in such a queue; none can be made."""


def get_rng_state_all() -> list:
    """The states of all GPUs' generators."""
    return []


def set_rng_state_all(new_states) -> None:
    """States for the generators of GPUs: they wait for GPUs to be set up, which never
    happens on this build, as in PyTorch."""
