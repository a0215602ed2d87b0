"""The accelerator's memory: how much of it is used, and by what."""

from __future__ import annotations

import taeda

from ._device import module as _module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def empty_cache() -> None:
    """Give the driver back what no tensor uses."""
    _module().empty_cache()


def empty_host_cache() -> None:
    """Give the driver back page-locked memory that no tensor uses."""
    _module()
    taeda._C._host_emptyCache()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of a device."""
    return _module().mem_get_info(device_index)


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """Counts of blocks, segments and their bytes; see `taeda.cuda.memory_stats`."""
    return _module().memory_stats(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes that tensors use."""
    return _module().memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that tensors used at a time."""
    return _module().max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that were taken from the driver, used or not."""
    return _module().memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that were taken from the driver at a time."""
    return _module().max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Let the largest uses count from now on."""
    _module().reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Let the totals count from now on; see `taeda.cuda`."""
    _module().memory.reset_accumulated_memory_stats(device_index)
