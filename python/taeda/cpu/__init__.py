"""The CPU as a device, with the interface that accelerators have."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = [
    "current_device",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "synchronize",
]


__getattr__ = attributes("taeda.cpu", None, ("amp",))


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """The name "cpu"."""
    return "cpu"


def set_device(device) -> None:
    """There is only one; nothing changes."""


def synchronize(device=None) -> None:
    """Operators have ended when they return; nothing is waited for."""


def _is_avx2_supported() -> bool:
    from taeda import _C

    return _C._cpu_capability() in ("AVX2", "AVX512")


def _is_avx512_supported() -> bool:
    from taeda import _C

    return _C._cpu_capability() == "AVX512"
