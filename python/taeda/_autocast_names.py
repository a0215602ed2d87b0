"""Settings of autocast under the names that have the device in them; each warns."""

from __future__ import annotations

import warnings

import taeda
from taeda import _C
from taeda._C import dtype as _dtype

__all__ = [
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cpu_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
]


def _now(old: str, now: str) -> None:
    library = taeda.__name__
    warnings.warn(
        f"{library}.{old} is deprecated. Please use {library}.{now} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def is_autocast_cpu_enabled() -> bool:
    """As `is_autocast_enabled("cpu")`, which has taken its place."""
    _now("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return _C.is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """As `set_autocast_enabled("cpu", enabled)`, which has taken its place."""
    _now("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    _C.set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> _dtype:
    """As `get_autocast_dtype("cpu")`, which has taken its place."""
    _now("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return _C.get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> _dtype:
    """As `get_autocast_dtype("cuda")`, which has taken its place."""
    _now("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return _C.get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: _dtype) -> None:
    """As `set_autocast_dtype("cpu", dtype)`, which has taken its place."""
    _now("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    _C.set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: _dtype) -> None:
    """As `set_autocast_dtype("cuda", dtype)`, which has taken its place."""
    _now("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    _C.set_autocast_dtype("cuda", dtype)
