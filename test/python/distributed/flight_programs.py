"""Ranks that fail, and what all of them are found to do then."""

from __future__ import annotations

import time
from pathlib import Path

import taeda
import taeda.distributed as dist
from ranks import dies, join


def _told(call) -> tuple[str, float]:
    """The text of what a call raises, and the seconds that it took."""
    started = time.monotonic()
    try:
        call()
    except RuntimeError as error:
        return str(error), time.monotonic() - started
    return "nothing was raised", time.monotonic() - started


def _stuck(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return "waited"


def _end_of(rank: int, told):
    """Leaves when the others have: who ends early could not answer."""
    Path(f"told.{rank}").touch()
    return told


def late(rank: int, world: int):
    """The last rank hangs outside of collectives."""
    join(".", rank, world, 2.0)
    dist.barrier()
    if rank == world - 1:
        return _stuck("told.0")
    return _end_of(rank, _told(lambda: dist.all_reduce(taeda.ones(3))))


def locked(rank: int, world: int):
    """The last rank hangs with Python's lock held."""
    import ctypes

    join(".", rank, world, 1.0)
    dist.barrier()
    if rank == world - 1:
        ctypes.PyDLL(None).sleep(8)
        return "waited"
    return _end_of(rank, _told(lambda: dist.all_reduce(taeda.ones(3))))


def killed(rank: int, world: int):
    """The last rank is no more."""
    join(".", rank, world)
    dist.barrier()
    dies(rank, world - 1, range(world - 1))
    return _end_of(rank, _told(lambda: dist.all_reduce(taeda.ones(3))))


def disagreeing(rank: int, world: int):
    """Rank 1 gives another shape."""
    join(".", rank, world, 2.0)
    dist.barrier()
    x = taeda.ones(2, 2) if rank == 1 else taeda.ones(3)
    told = _told(lambda: dist.all_reduce(x))
    _end_of(rank, told)
    for other in range(world):
        _stuck(f"told.{other}")
    return told


def message(rank: int, world: int):
    """Nobody sends to rank 0."""
    join(".", rank, world, 1.0)
    if rank > 0:
        return _stuck("told.0")
    return _end_of(rank, _told(lambda: dist.recv(taeda.ones(3), 1)))


def repeated(rank: int, world: int):
    """A group that has failed is reported once."""
    join(".", rank, world, 1.0)
    if rank > 0:
        return _stuck("told.0")
    first = _told(lambda: dist.all_reduce(taeda.ones(3)))
    return _end_of(rank, [first, _told(lambda: dist.all_reduce(taeda.ones(3)))])


def subgroup(rank: int, world: int):
    """A group of two of three ranks, of which one is late."""
    join(".", rank, world, 1.0)
    pair = dist.new_group([0, 2])
    if rank > 0:
        return _stuck("told.0")
    return _end_of(rank, _told(lambda: dist.barrier(group=pair)))


def barrier(rank: int, world: int):
    """A monitored barrier names those who are missing; the log says where they are."""
    import logging
    from datetime import timedelta

    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("taeda.distributed").addHandler(handler)
    join(".", rank, world, 5.0)
    if rank > 0:
        return _stuck("told.0")
    limit = timedelta(seconds=1)
    text, seconds = _told(lambda: dist.monitored_barrier(None, limit, True))
    return _end_of(rank, (text, seconds, told))
