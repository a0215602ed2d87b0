"""Functions that `ranks.run` runs under mpiexec, for test_mpi.py."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import taeda
import taeda.distributed as dist
from ranks import join
from taeda import _distributed


def _halves(rank: int, world: int) -> list[float]:
    found = []
    for dtype in (taeda.float16, taeda.bfloat16):
        for size in (3, 100_000):
            x = taeda.full((size,), rank + 1, dtype=dtype)
            dist.all_reduce(x)
            found.append(x.double().mean().item())
    return found


def groups(rank: int, world: int) -> dict:
    """Halves, objects, a group of the first and the last rank, messages."""
    join(".", rank, world)
    found: dict = {"place": (dist.get_rank(), dist.get_world_size())}
    found["place"] += (dist.get_backend(),)
    found["halves"] = _halves(rank, world)
    entry = _distributed.flight_record()[-1]
    found["recorded"] = entry["collective"], entry["state"]
    found["objects"] = [None] * world
    dist.all_gather_object(found["objects"], {"rank": rank})
    pair, found["ends"] = dist.new_group([0, world - 1]), None
    if rank in (0, world - 1):
        x = taeda.ones(2) * (rank + 1)
        dist.all_reduce(x, group=pair)
        found["ends"] = x[0].item()
    _messages(rank, found)
    dist.monitored_barrier()
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("key", "told")
    found["store"] = store.get("key")
    dist.barrier()  # rank 0 has the store's server
    dist.destroy_process_group()
    return found


def _messages(rank: int, found: dict) -> None:
    if rank == 0:
        # The second is taken first.
        dist.isend(taeda.arange(4), 1, tag=7)
        dist.isend(taeda.ones(5), 1, tag=8)
    if rank == 1:
        try:
            dist.recv(taeda.zeros(3), 0, tag=8)
        except dist.DistBackendError as error:
            found["wrong"] = str(error)
        x = taeda.zeros(4, dtype=taeda.int64)
        dist.recv(x, 0, tag=7)
        found["received"] = x.tolist()


def stopped(rank: int, world: int, victim: int) -> str:
    """One rank stops between collectives until all others have raised."""
    join(".", rank, world, 2.0)
    if rank == victim:
        Path("pid").write_text(str(os.getpid()))
    try:
        for turn in range(1000):
            if rank == victim and turn == 3:
                os.kill(os.getpid(), signal.SIGSTOP)
            dist.all_reduce(taeda.ones(1000))
    except dist.DistBackendError as error:
        Path(f"raised.{rank}").touch()
        if len(list(Path(".").glob("raised.*"))) == world - 1:
            os.kill(int(Path("pid").read_text()), signal.SIGCONT)
        return str(error)
    return "nothing was raised"


def absent(rank: int, world: int) -> str:
    """Rank 1 begins MPI, but does not join."""
    from taeda.distributed import _mpi

    if rank == 1:
        _mpi.place()
        return "alone"
    try:
        join(".", rank, world, 1.0)
    except dist.DistBackendError as error:
        return str(error)
    return "nothing was raised"
