"""What processes of `test_spawn.py` run."""

from __future__ import annotations

import os
import signal
import sys
import time

import taeda.multiprocessing as mp


def give_rank(rank: int, results) -> None:
    results.put(rank)


def raise_long(rank: int, length: int) -> None:
    if rank == 1:
        raise ValueError("x" * length)


def first_exits(rank: int, code: int, seconds: float) -> None:
    if rank == 0:
        sys.exit(code)
    time.sleep(seconds)


def first_aborts(rank: int) -> None:
    if rank == 0:
        os.kill(os.getpid(), signal.SIGABRT)
    time.sleep(60)


def tell_and_sleep(rank: int, results) -> None:
    results.put(os.getpid())
    time.sleep(60)


def start_and_be_killed(rank: int, method: str, results) -> None:
    own = mp.get_context(method).SimpleQueue()
    mp.start_processes(
        tell_and_sleep, (own,), nprocs=2, join=False, start_method=method
    )
    results.put([own.get(), own.get()])
    os.kill(os.getpid(), signal.SIGKILL)
