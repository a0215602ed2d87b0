"""Memory of GPUs: what is used, what is cached, how much there may be.

Without a GPU counts are zero, and what would change something refuses.
"""

from __future__ import annotations

import taeda
from taeda import _profiler
from taeda._lazy import attributes
from taeda.cuda._devices import _driver, index_of, is_initialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_POOLS = ("all", "small_pool", "large_pool")
_MEASURES = ("current", "peak", "allocated", "freed")
_POOL_NAMES = (
    "CUDAPluggableAllocator MemPool caching_allocator_disabled"
    " caching_allocator_enable change_current_allocator list_gpu_processes"
    " use_mem_pool"
)
_HISTORY_NAMES = (
    "_allocation_traceback _dump_snapshot _record_memory_history"
    " _set_allocator_settings _snapshot"
)
__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]


def get_allocator_backend() -> str:
    """The name of the allocator of device memory: "native", or "pluggable" where a
    program brought one (`change_current_allocator`)."""
    return "pluggable" if _driver().changed_allocator() else "native"


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Memory of a GPU for another library, as an address.

    Args:
        size: bytes.
        device: the GPU; the current one by default.
        stream: the stream that uses it, or its handle 0; the current one by default.

    Returns:
        The address, for `caching_allocator_delete`.

    Raises:
        TypeError: a stream that is neither a Stream nor 0.
    """
    functions = _driver()
    index = index_of(device)
    if stream is None:
        identity = functions.current_stream(index)
    elif isinstance(stream, int) and stream == 0:
        identity = 0
    elif hasattr(stream, "stream_id"):
        identity = stream.stream_id
    else:
        raise TypeError(
            "Invalid type for stream argument, must be "
            f"`{taeda.__name__}.cuda.Stream` or 0, got "
            f"{stream!r}"
        )
    return functions.allocate(size, index, identity)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` gave.

    Raises:
        RuntimeError: it gave no such address.
    """
    _driver().free(mem_ptr)


def empty_cache() -> None:
    """Give the driver back what no tensor uses."""
    if is_initialized():
        _driver().empty_cache()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` by the parts of their names; empty where nothing was used."""
    if not is_initialized():
        return {}
    stats = _driver().memory_stats(index_of(device))
    return {name: _named(value) for name, value in stats.items()}


def _named(value: Any) -> Any:
    if isinstance(value, tuple):
        return dict(zip(_MEASURES, value, strict=True))
    if isinstance(value, list):
        return {pool: _named(row) for pool, row in zip(_POOLS, value, strict=True)}
    return value


def _flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return dict(sorted(flat.items()))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Counts of blocks, segments and their bytes: now, the largest, ever taken, freed.

    Keys are "allocated_bytes.all.current" and their like. "inactive_split" counts free
    blocks beside others, with which no whole segment can be given back; "oversize_*"
    blocks and segments from `max_split_size_mb` on.

    Raises:
        NotImplementedError: `change_current_allocator` brought one that does not count.
    """
    return _flat(memory_stats_as_nested_dict(device))


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory that tensors use."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors used at a time."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that were taken from the driver, used or not."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from the driver at a time."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def _warn_of_old(old: str, new: str) -> None:
    import warnings

    place = f"{taeda.__name__}.cuda"
    text = f"`{place}.{old}` has been renamed to `{place}.{new}`"
    warnings.warn(text, FutureWarning, stacklevel=3)


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`."""
    _warn_of_old("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`."""
    _warn_of_old("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the largest uses count from now on."""
    if is_initialized():
        _driver().reset_peak(index_of(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let what was ever taken and given back count from now on."""
    functions = _driver()
    functions.reset_totals(index_of(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a GPU."""
    functions = _driver()
    return functions.memory_info(index_of(device))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Take at most this share of a GPU's memory.

    Raises:
        TypeError: not a float.
        ValueError: outside of 0 to 1.
    """
    functions = _driver()
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    functions.set_memory_fraction(fraction, index_of(device))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The share of a GPU's memory that may be taken; 1.0 where none was set."""
    functions = _driver()
    return functions.memory_fraction(index_of(device))


def _frames(origin: int) -> list[dict[str, Any]]:
    return [
        {"filename": file, "line": line, "name": name}
        for file, line, name in _profiler.gpu_origin(origin)
    ]


def memory_snapshot(
    mempool_id: Any = None, include_traces: bool = True
) -> list[dict[str, Any]]:
    """The segments of all GPUs, each with its blocks in order.

    Args:
        mempool_id: of a `MemPool`, whose segments alone are wanted; all by default.
        include_traces: whether blocks have `frames`.

    Returns:
        A dict for each segment. Its `blocks` of more than 1 MiB have `frames`: where
        the program took them, innermost first; the smaller ones have them while
        `_record_memory_history` is on.
    """
    segments = _driver().segments()
    if mempool_id is not None:
        wanted = tuple(mempool_id)
        segments = [s for s in segments if s["segment_pool_id"] == wanted]
    for segment in segments:
        for block in segment["blocks"]:
            origin = block.pop("origin")
            block["frames"] = _frames(origin) if include_traces else []
    return segments


def _in_units(count: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 10240:
            return f"{count:6d} {unit}"
        count //= 1024
    return f"{count:6d} TiB"


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counts of `memory_stats` as a table, in units that fit."""
    _driver()
    stats = memory_stats_as_nested_dict(device)
    lines = [f"{'':24}" + "".join(f"{m:>14}" for m in _MEASURES)]
    for name, pools in stats.items():
        if not isinstance(pools, dict):
            continue
        if "current" in pools:  # not told apart by size
            pools = {"all": pools}
        for pool, row in pools.items():
            if abbreviated and pool != "all":
                continue
            is_bytes = name.endswith("bytes")
            shown = (_in_units(n) if is_bytes else str(n) for n in row.values())
            title = name if pool == "all" else f"  {pool}"
            lines.append(f"{title:24}" + "".join(f"{text:>14}" for text in shown))
    return "\n".join(lines)


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats` by the parts of their names; empty where no GPU was used."""
    if not is_initialized():
        return {}
    counts, times = _driver().host_stats()
    named = {name: _named(row) for name, row in counts.items()}
    for name, (total, most, least, calls) in times.items():
        average = total / calls if calls else 0.0
        named[name] = {
            "total": total,
            "max": most,
            "min": least,
            "count": calls,
            "avg": average,
        }
    named["num_host_alloc"] = named["allocations"]["allocated"]
    named["num_host_free"] = named["allocations"]["freed"]
    return named


def host_memory_stats() -> dict[str, Any]:
    """Counts of page-locked memory: now, the largest, ever taken, freed.

    "allocations" and "allocated_bytes" are of all blocks, "active_requests" and
    "active_bytes" of those that somebody has, or that a stream still works on;
    "host_alloc_time" and "host_free_time" are microseconds in the driver.
    """
    return _flat(host_memory_stats_as_nested_dict())


def reset_accumulated_host_memory_stats() -> None:
    """Let what was ever taken and given back of page-locked memory count anew."""
    _driver().reset_host_totals()


def reset_peak_host_memory_stats() -> None:
    """Let the largest uses of page-locked memory count from now on."""
    _driver().reset_host_peak()


__all__ += _POOL_NAMES.split()
__getattr__ = attributes(
    __name__,
    dict.fromkeys(_POOL_NAMES.split(), "._pools")
    | dict.fromkeys(_HISTORY_NAMES.split(), "._history"),
)
