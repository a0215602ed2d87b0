"""Ranks that are lost, and what those who are left go on with."""

from __future__ import annotations

import os
import time

import taeda
import taeda.distributed as dist
from ranks import dies, is_ending, join

DEVICE = "cuda" if os.environ.get("TAEDA_TEST_ROUTE") == "nccl" else "cpu"


def _sum(rank: int, group=None) -> float:
    x = taeda.full((3,), 10.0**rank, device=DEVICE)
    dist.all_reduce(x, group=group)
    return x.cpu()[0].item()


def lost(rank: int, world: int):
    """Rank 1 dies; the others shrink the world, make groups in it, and go on."""
    join(".", rank, world)
    dist.barrier()
    other = dist.new_group([0, 1])
    dies(rank, 1, (0, 2, 3))
    try:
        _sum(rank)
        return "nothing was raised"
    except dist.DistBackendError as error:
        told = "rank 1" in str(error)
    world_before = dist.group.WORLD
    made = dist.shrink_group([1])
    found = {
        "told": told,
        "default": made is dist.group.WORLD is not world_before,
        "place": (dist.get_rank(), dist.get_world_size()),
        "ranks": dist.get_process_group_ranks(None),
        "sum": _sum(rank),
        "others": dist.get_pg_count() > 0 and other in dist._world._world.pg_map,
    }
    pair = dist.new_group([0, 2])
    found["pair"] = _sum(rank, pair) if dist.get_rank() != 1 else None
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, rank)
    found["objects"] = gathered
    dist.barrier()
    dist.destroy_process_group()
    return found


def twice(rank: int, world: int):
    """First the last rank dies, then the one before it."""
    join(".", rank, world)
    dist.barrier()
    sums = []
    for victim in (world - 1, world - 2):
        dies(rank, victim, range(victim))
        try:
            _sum(rank)
        except dist.DistBackendError:
            dist.shrink_group([victim])
        sums.append(_sum(rank))
    return sums


def part(rank: int, world: int):
    """A group of ranks 1 to 3 loses its rank 0, which goes on elsewhere."""
    join(".", rank, world)
    group = dist.new_group([1, 2, 3])
    if rank >= 2:
        made = dist.shrink_group([0], group, dist.distributed_c10d.SHRINK_ABORT)
        place = made.rank(), made.size(), dist.get_process_group_ranks(made)
        return place, _sum(rank, made), _sum(rank)
    return _sum(rank)


def refused(rank: int, world: int):
    """What cannot be shrunk says so."""
    join(".", rank, world)
    texts = []
    for given, flags in (
        (["x"], 1),
        ([], 0),
        ((1,), 0),
        ([world], 1),
        ([1, 1], 1),
        (list(range(world)), 1),
        ([rank], 1),
        ([(rank + 1) % world], 2),
        ([(rank + 1) % world], 0),
    ):
        try:
            dist.shrink_group(given, None, flags)
        except (TypeError, ValueError, RuntimeError) as error:
            texts.append(f"{type(error).__name__}: {error}")
    dist.barrier()
    return texts


def nccl_lost(rank: int, world: int):
    """As `lost`, with collectives of devices."""
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "2"
    join(".", rank, world, 2.0)
    dist.barrier()
    dies(rank, 1, (0, 2))
    try:
        while True:
            _sum(rank)
            time.sleep(0.05)
    except dist.DistBackendError:
        pass
    dist.shrink_group([1])
    found = _sum(rank), dist.get_rank(), dist.get_world_size()
    dist.barrier()
    dist.destroy_process_group()
    return found


def heartbeat(rank: int, world: int):
    """Python's lock is held for longer than the watchdog may stand still."""
    import ctypes
    import sys

    os.environ["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] = "1"
    join(".", rank, world)
    _sum(rank)
    dist.barrier()
    if rank == 0:
        is_ending(rank)
        sys.stderr.flush()
        file = os.open("told", os.O_CREAT | os.O_WRONLY)
        os.dup2(file, 2)
        ctypes.PyDLL(None).sleep(20)
        return "not ended"
    time.sleep(2.5)
    return "lives"
