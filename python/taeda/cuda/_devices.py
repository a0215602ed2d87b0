"""Devices: which there are, which is current, what they are like."""

from __future__ import annotations

from taeda import _cuda
from taeda import _profiler as _profiler  # names the lines that take memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEVICE = "int | str | taeda.device | None"
# Whether NVIDIA's packages were looked for; setting it twice is harmless.
_looked = False


def _library_folders() -> list[str]:
    """Folders of the nvidia-* packages that have shared libraries."""
    import importlib.util
    import pathlib

    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    files = (file for root in roots for file in pathlib.Path(root).rglob("*.so*"))
    return sorted({str(file.parent) for file in files})


def _driver() -> Any:
    """The functions of `_cuda`, once there is a driver and a device.

    Raises:
        AssertionError: nothing to run on, with what is missing.
    """
    global _looked
    functions = _cuda
    if not _looked:
        functions.device_count()
        for folder in _library_folders():
            functions.add_library_folder(folder)
        from taeda.nn.modules._hooks import Hooks

        _profiler.gpu_modules(Hooks.__call__.__code__)
        _looked = True
    return functions


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used a GPU: it cannot."""
    return _cuda.is_lost_in_fork()


def index_of(device: Any = None, optional: bool = True) -> int:
    """The number of a device: the current one for None and for "cuda".

    Raises:
        ValueError: a device of another type, or none where one must be named.
    """
    import taeda

    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = taeda.device(device)
    if device is None:
        if not optional:
            raise ValueError("Expected a cuda device with a specified index, got None")
        return _driver().current_device()
    if getattr(device, "type", "") != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    if device.index is None:
        if not optional:
            wanted = "a cuda device with a specified index or an integer"
            raise ValueError(f"Expected {wanted}, but got: {device}")
        return _driver().current_device()
    return device.index


def is_available() -> bool:
    """Whether there is a GPU that can be used."""
    return device_count() > 0


def device_count() -> int:
    """The number of GPUs that can be used; 0 without a driver."""
    try:
        return _driver().device_count()
    except (AssertionError, RuntimeError):
        return 0


def is_initialized() -> bool:
    """Whether a GPU was used, or asked for, in this process."""
    return _cuda.is_loaded()


def init() -> None:
    """Load the driver, which happens by itself at the first use.

    Raises:
        AssertionError: there is no GPU, with what is missing.
    """
    _driver()


def current_device() -> int:
    """The number of the thread's current GPU."""
    return _driver().current_device()


def set_device(device: Any) -> None:
    """Make a GPU the thread's current one; a negative number changes nothing."""
    index = index_of(device)
    if index >= 0:
        _driver().set_device(index)


def synchronize(device: Any = None) -> None:
    """Wait for all work on a GPU."""
    functions = _driver()
    functions.synchronize(index_of(device))


class _CudaDeviceProperties:
    """What a GPU is like; memory in bytes, rates in kHz."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        raw = values["uuid"].hex()
        parts = (raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])
        self.uuid = "-".join(parts)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, "
            f"minor={self.minor}, total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """Name, memory, processors and limits of a GPU.

    Raises:
        AssertionError: there is no such GPU.
    """
    functions = _driver()
    index = index_of(device)
    if not 0 <= index < functions.device_count():
        raise AssertionError("Invalid device id")
    return _CudaDeviceProperties(functions.properties(index))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU, as (major, minor)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU can read another one's memory."""
    functions = _driver()
    one, other = index_of(device, False), index_of(peer_device, False)
    for index in (one, other):
        if not 0 <= index < functions.device_count():
            raise AssertionError("Invalid device id")
    return functions.can_access_peer(one, other)


class device:
    """Makes a GPU the current one inside `with`; -1 and None leave all as it is."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device
        if self.idx != -1:
            self.idx = index_of(device)
            _driver()
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """Makes the GPU of a tensor the current one inside `with`."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)
