"""Memory of GPUs, of which this build uses none: counts are zero, the rest refuses."""

from __future__ import annotations

from taeda import cuda
from taeda._lazy import attributes
from taeda.cuda import _no_device, max_memory_reserved, memory_reserved

_SHARED = "empty_cache reset_peak_memory_stats reset_max_memory_allocated mem_get_info"
_SHARED += " max_memory_allocated memory_allocated memory_stats"
_OWN = "memory_cached max_memory_cached memory_stats_as_nested_dict host_memory_stats"
_OWN += " host_memory_stats_as_nested_dict"
_REFUSED = (
    "caching_allocator_alloc caching_allocator_delete change_current_allocator"
    " get_allocator_backend get_per_process_memory_fraction memory_snapshot"
    " memory_summary reset_accumulated_host_memory_stats reset_max_memory_cached"
    " reset_accumulated_memory_stats reset_peak_host_memory_stats"
    " set_per_process_memory_fraction"
)
globals().update((name, getattr(cuda, name)) for name in _SHARED.split())
globals().update(dict.fromkeys(_REFUSED.split(), _no_device))
__all__ = ["max_memory_reserved", "memory_reserved"]
__all__ += f"{_SHARED} {_OWN} {_REFUSED}".split()


def memory_cached(device=None) -> int:
    """The old name of `memory_reserved`."""
    _warn_of_old("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device=None) -> int:
    """The old name of `max_memory_reserved`."""
    _warn_of_old("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def _warn_of_old(old: str, new: str) -> None:
    import warnings

    text = f"`taeda.cuda.{old}` has been renamed to `taeda.cuda.{new}`"
    warnings.warn(text, FutureWarning, stacklevel=3)


def memory_stats_as_nested_dict(device=None) -> dict:
    """`memory_stats` by the parts of their names."""
    return {}


def host_memory_stats() -> dict:
    """Counts of pinned memory, of which none is used."""
    return {}


def host_memory_stats_as_nested_dict() -> dict:
    """`host_memory_stats` by the parts of their names."""
    return {}


__getattr__ = attributes(__name__)
