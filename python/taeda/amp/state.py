"""What autocast is set to, by kind of device."""

from __future__ import annotations

from taeda import _C

_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "ipu", "xla")
_enabled = dict.fromkeys(_DEVICES, False)
_dtypes = {
    device: _C.float16 if device in ("cuda", "mps") else _C.bfloat16
    for device in _DEVICES
}
_cache = {"enabled": True, "nesting": 0}


def _known(device_type: str) -> str:
    if device_type not in _enabled:
        raise RuntimeError(
            f"unknown device type for autocast: {device_type!r}; known are "
            f"{', '.join(_DEVICES)}"
        )
    return device_type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows a kind of device."""
    return device_type in _enabled


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a kind of device; "cuda" if none is named."""
    return _enabled[_known(device_type or "cuda")]


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """Switch autocast for a kind of device.

    Raises:
        NotImplementedError: switched on; the casting kernels do not exist yet.
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if enabled:
        raise NotImplementedError(
            "autocast: running operators in lower precision does not exist yet; "
            "convert modules and inputs with .to(dtype) instead"
        )
    _enabled[_known(device_type)] = False


def get_autocast_dtype(device_type: str):
    """The dtype that autocast computes in."""
    return _dtypes[_known(device_type)]


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Set the dtype that autocast computes in."""
    _dtypes[_known(device_type)] = dtype


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return _enabled["cpu"]


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast for the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """The dtype that autocast computes in on the CPU."""
    return _dtypes["cpu"]


def set_autocast_cpu_dtype(dtype) -> None:
    """Set the dtype that autocast computes in on the CPU."""
    _dtypes["cpu"] = dtype


def get_autocast_gpu_dtype():
    """The dtype that autocast computes in on CUDA."""
    return _dtypes["cuda"]


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept within an autocast scope."""
    return _cache["enabled"]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch the keeping of casts."""
    _cache["enabled"] = bool(enabled)


def clear_autocast_cache() -> None:
    """Drop kept casts; there are none yet."""


def autocast_increment_nesting() -> int:
    """Enter a scope; returns how many there are."""
    _cache["nesting"] += 1
    return _cache["nesting"]


def autocast_decrement_nesting() -> int:
    """Leave a scope; returns how many are left."""
    _cache["nesting"] -= 1
    return _cache["nesting"]
