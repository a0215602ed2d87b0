"""Whether Triton is there, for programs that have kernels written in it."""

from __future__ import annotations

import importlib
from functools import cache

__all__ = ["get_triton_version", "has_triton", "has_triton_package"]

# A program's own package; nothing here needs it.
_PACKAGE = "triton"


@cache
def has_triton_package() -> bool:
    """Whether Triton can be imported."""
    try:
        importlib.import_module(_PACKAGE)
    except ImportError:
        return False
    return True


@cache
def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """The first two numbers of Triton's version; `fallback` without Triton."""
    if not has_triton_package():
        return fallback
    version = importlib.import_module(_PACKAGE).__version__
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


@cache
def has_triton() -> bool:
    """Whether kernels in Triton can run: with Triton, on a CUDA device."""
    import taeda

    return has_triton_package() and taeda.cuda.is_available()
