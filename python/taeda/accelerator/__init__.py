"""The accelerator in use, whichever it is: the device that a program added
(`taeda.utils.rename_privateuse1_backend`), else CUDA, where there is a GPU.

Without one, what asks for it refuses, and what counts it says 0.
"""

from __future__ import annotations

from taeda._lazy import attributes

from . import memory
from ._device import module as _module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Graph",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "get_device_capability",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
    *memory.__all__,
]
__getattr__ = attributes(__name__, {"Graph": "graphs"}, ("graphs",))
globals().update({name: getattr(memory, name) for name in memory.__all__})


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def device_count() -> int:
    """How many there are."""
    from taeda import _C, cuda

    return _C._program_device_count() or cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """The device, without a number; None where there is none."""
    import taeda
    from taeda import _C

    if _C._program_device_count() > 0:
        return taeda.device(_C._get_privateuse1_backend_name())
    return taeda.device("cuda") if is_available() else None


def current_device_index() -> int:
    """The number of the thread's current device."""
    return _module().current_device()


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Make a device the thread's current one."""
    _module().set_device(device)


set_device_idx = set_device_index


def current_stream(device: Any = None, /) -> Any:
    """The thread's current stream of a device."""
    return _module().current_stream(device)


def set_stream(stream: Any) -> None:
    """Make a stream the current one, and its device too."""
    module = _module()
    module.set_device(stream.device_index)
    module.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work on a device."""
    _module().synchronize(device)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device computes with: `supported_dtypes`."""
    import taeda

    _module().get_device_properties(device)
    every = (getattr(taeda, name) for name in dir(taeda))
    return {"supported_dtypes": {d for d in every if isinstance(d, taeda.dtype)}}


class device_index:
    """Makes a device the current one inside `with`; None leaves all as it is.

    Raises:
        RuntimeError: on entering, with an index: there is no accelerator.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self._before = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self._before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc_info: Any) -> None:
        if self.idx is not None:
            set_device_index(self._before)
