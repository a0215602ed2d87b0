"""Collectives between processes: not in this build.

`is_available()` says so, which is what programs ask first; the names of collectives are
not there. A few classes are placeholders (`taeda._compat`).
"""

from __future__ import annotations

import os

from taeda._lazy import attributes

__all__ = [
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]
__getattr__ = attributes(__name__)


def is_available() -> bool:
    """Whether the build has process groups: no."""
    return False


def is_initialized() -> bool:
    """Whether the default group exists: no."""
    return False


def _no_backend() -> bool:
    """Whether the build has this communication library: no."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = _no_backend
is_ucc_available = is_xccl_available = _no_backend


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ
