"""The accelerator in use, whichever it is: none in this build."""

from __future__ import annotations

from taeda._compat.unmade import unmade_class

_REFUSED = (
    "current_device_idx current_device_index current_stream empty_cache"
    " empty_host_cache get_device_capability get_memory_info max_memory_allocated"
    " max_memory_reserved memory_allocated memory_reserved memory_stats"
    " reset_accumulated_memory_stats reset_peak_memory_stats set_device_idx"
    " set_device_index set_stream synchronize"
)
__all__ = [
    "Graph",
    "current_accelerator",
    "device_count",
    "device_index",
    "is_available",
]
__all__ += _REFUSED.split()


def is_available() -> bool:
    """Whether there is one."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def current_accelerator(check_available: bool = False):
    """Its device; None."""
    return None


def _no_accelerator():
    raise RuntimeError("Cannot access accelerator device when none is available.")


def _refusing(name: str):
    """A function of the accelerator, of which there is none."""

    def refuse(*args, **kwargs):
        _no_accelerator()

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises RuntimeError: there is no accelerator."
    return refuse


globals().update((name, _refusing(name)) for name in _REFUSED.split())


Graph = unmade_class("accelerator.Graph", _no_accelerator)


class device_index:
    """Makes a device the current one inside `with`; None leaves all as it is.

    Raises:
        RuntimeError: on entering, with an index: there is no accelerator.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _no_accelerator()

    def __exit__(self, *exc_info) -> None:
        return None
