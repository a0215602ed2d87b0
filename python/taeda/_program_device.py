"""The device that a program adds, as functions of `taeda.accelerator` see it.

Names and calls are those of `taeda.cuda`, as far as every device has them.
"""

from __future__ import annotations

import taeda
from taeda import _C, _cuda

__all__ = ["is_there"]


def is_there() -> bool:
    """Whether a program has registered one, with devices that can be used."""
    return _C._program_device_count() > 0


def index_of(device) -> int:
    """The number of a device, an int, None for the current one.

    Raises:
        ValueError: it is another kind of device.
        RuntimeError: there are not so many.
    """
    if device is None:
        return _cuda.program_device()
    if isinstance(device, int):
        index = device
    else:
        wanted = taeda.device(device)
        kind = _C._get_privateuse1_backend_name()
        if wanted.type != kind:
            raise ValueError(f"Expected a {kind} device, but got: {wanted}")
        index = _cuda.program_device() if wanted.index is None else wanted.index
    count = _C._program_device_count()
    if not 0 <= index < count:
        name = _C._get_privateuse1_backend_name()
        raise RuntimeError(f"{name}:{index}: invalid device, there are {count}")
    return index


def current_device() -> int:
    """The number of the thread's current device."""
    return _cuda.program_device()


def set_device(device) -> None:
    """Makes a device the thread's current one."""
    _cuda.set_program_device(index_of(device))


def current_stream(device=None):
    """The thread's current stream of a device."""
    index = index_of(device)
    number = _cuda.program_stream(index)
    where = f"{_C._get_privateuse1_backend_name()}:{index}"
    return taeda.Stream(where, stream_id=number)


def set_stream(stream) -> None:
    """Makes a stream its device's current one."""
    _cuda.set_program_stream(stream.device_index, stream.stream_id)


def synchronize(device=None) -> None:
    """Waits for all work on a device."""
    _cuda.synchronize_program_device(index_of(device))


def get_device_properties(device=None) -> None:
    """Checks that the device is there: nothing else is known of it."""
    index_of(device)


def empty_cache() -> None:
    """Gives back what no tensor uses."""
    _cuda.empty_program_cache()


def memory_stats(device=None) -> dict[str, int]:
    """Bytes that tensors use now and used at most, and allocations, of all devices."""
    index_of(device)
    stats = _cuda.program_memory_stats()
    return {
        "allocated_bytes.all.current": stats["allocated"],
        "allocated_bytes.all.peak": stats["peak"],
        "allocation.all.allocated": stats["allocations"],
        "reserved_bytes.all.current": stats["allocated"] + stats["cached"],
    }


def memory_allocated(device=None) -> int:
    """Bytes that tensors use."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None) -> int:
    """The most bytes that tensors used at a time."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None) -> int:
    """Bytes that were taken, used or not."""
    return memory_stats(device)["reserved_bytes.all.current"]


def reset_peak_memory_stats(device=None) -> None:
    """Lets the largest use count from now on."""
    index_of(device)
    _cuda.reset_program_peak()


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"accelerator: {name} is not there for {_C._get_privateuse1_backend_name()}"
        )

    return refuse
