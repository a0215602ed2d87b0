"""Apple's GPUs, which this build does not use."""

from __future__ import annotations

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
]


def is_available() -> bool:
    """Whether a GPU can be used: not in this build."""
    return False


def device_count() -> int:
    """The number of GPUs that can be used."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the GPU's generator, once there is one."""


def empty_cache() -> None:
    """Gives cached memory back; there is none."""


def current_allocated_memory() -> int:
    """Bytes of GPU memory in use."""
    return 0


driver_allocated_memory = recommended_max_memory = current_allocated_memory


def _no_device(*args, **kwargs):
    raise AssertionError("Taeda not compiled with MPS enabled: no GPU can be used")


synchronize = get_rng_state = set_rng_state = seed = _no_device
