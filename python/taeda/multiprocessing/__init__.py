"""Python's multiprocessing, with tensors in memory that processes share.

Tensors, parameters and storages that go through queues, pipes and arguments of
processes move to shared memory (`reductions`), so both sides see each other's writes.
"""

from __future__ import annotations

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403

from taeda._lazy import missing

from ._strategy import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    set_sharing_strategy,
)
from .reductions import init_reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
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
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()


def __getattr__(name: str):
    found = getattr(_standard, name, None)
    if found is None:
        raise missing(__name__, name)
    return found
