"""The instruction set in use."""

from __future__ import annotations

from taeda import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """ "DEFAULT", "AVX2" or "AVX512"."""
    return _C._cpu_capability()
