"""A device that this build does not use.

The text is executed once for each line of `table.DEVICES`, as the module of that name
(`taeda.xpu`), and keeps what the line names: so `__module__` of each function is right,
and `hasattr` tells what PyTorch's module of that device has.
"""

from __future__ import annotations

from taeda._compat.table import DEVICES


def is_available() -> bool:
    """Whether a device can be used: not in this build."""
    return False


def is_initialized() -> bool:
    """Whether the devices have been set up: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16."""
    return False


def device_count() -> int:
    """The number of devices that can be used."""
    return 0


def empty_cache() -> None:
    """Gives cached memory back; there is none."""


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator, once there is one."""


def memory_allocated(device=None) -> int:
    """Bytes of the device's memory in use."""
    return 0


def current_allocated_memory() -> int:
    """Bytes of the device's memory in use."""
    return 0


def reset_peak_memory_stats(device=None) -> None:
    """Restarts the count of the largest memory use."""


def memory_stats(device=None) -> dict:
    """Counts of the device's memory, of which none is used."""
    return {}


def get_arch_list() -> list[str]:
    """The devices that this build was compiled for."""
    return []


def get_gencode_flags() -> str:
    """The flags with which it was compiled for them."""
    return ""


def is_tf32_supported() -> bool:
    """Whether the device has units for TF32."""
    return False


def get_rng_state_all() -> list:
    """The states of all devices' generators."""
    return []


def set_rng_state_all(new_states) -> None:
    """States for the generators of devices: they wait for devices to be set up, which
    never happens on this build, as in PyTorch."""


def _no_device(*args, **kwargs):
    name = __name__.rpartition(".")[2].upper()
    raise AssertionError(f"Taeda not compiled with {name} enabled: no GPU can be used")


class Stream:
    """A queue of work on a device; none can be made."""

    def __init__(self, *args, **kwargs) -> None:
        _no_device()


class Event(Stream):
    """A mark in such a queue; none can be made."""


class device:
    """Makes a device the current one inside `with`; -1 and None leave all as it is."""

    def __init__(self, device) -> None:
        if device is not None and device != -1:
            _no_device()

    def __enter__(self) -> None:
        return None

    def __exit__(self, type, value, traceback) -> None:
        return None


def _kept(line: str, defined: dict) -> dict:
    """The names of a line, and what each stands for among `defined`."""
    kept = {}
    for entry in line.split():
        name, _, same = entry.partition("=")
        refused = name.endswith("!")
        kept[name.rstrip("!")] = _no_device if refused else defined[same or name]
    return kept


_line = DEVICES.get(__name__.removeprefix("taeda."))
if _line is not None:
    _names = _kept(_line[1], globals())
    __doc__ = f"{_line[0]}, which this build does not use."
    __all__ = [name for name, value in _names.items() if value is not _no_device]
    for _name in [name for name in globals() if not name.startswith("_")]:
        del globals()[_name]
    globals().update(_names)
