"""Python's multiprocessing, and processes that report how they failed.

Tensors travel between processes as copies; memory shared between processes is not
there yet, `share_memory_` says so, and there are no strategies of sharing to choose.
"""

from __future__ import annotations

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403

from taeda._lazy import missing

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
    "spawn",
    "start_processes",
]


def __getattr__(name: str):
    found = getattr(_standard, name, None)
    if found is None:
        raise missing(__name__, name)
    return found
