"""Python's multiprocessing, and processes that report how they failed.

Tensors travel between processes as copies; memory shared between processes is not
there yet, and `share_memory_` says so.
"""

from __future__ import annotations

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403

from ._spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_standard.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]
_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """How tensors would be shared."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how tensors would be shared; they are copied for now."""
    global _strategy
    assert new_strategy in _STRATEGIES
    _strategy = new_strategy


def __getattr__(name: str):
    return getattr(_standard, name)
