"""Functions that `ranks.run` runs on emulated devices, for test_nccl.py."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path

import numpy as np
import taeda
import taeda.distributed as dist
from ranks import is_ending, join
from taeda import _distributed
from taeda.nn.parallel import DistributedDataParallel

DEVICE = "cuda"


def _own(rank: int, *shape: int, dtype=None):
    return taeda.full(shape, rank + 1, dtype=dtype or taeda.float32, device=DEVICE)


def _listed(x) -> list:
    return x.cpu().tolist()


def reductions(rank: int, world: int) -> dict:
    """Sums of all dtypes, operations, sizes of one step and of several."""
    join(".", rank, world)
    found: dict = {}
    dtypes = "float64 float32 float16 bfloat16 int8 uint8 int32 int64".split()
    for name in dtypes:
        x = _own(rank, 3, dtype=getattr(taeda, name))
        dist.all_reduce(x)
        found[name] = _listed(x.double())
    for op in ("SUM", "PRODUCT", "MIN", "MAX", "AVG"):
        x = _own(rank, 200_000)
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        found[op] = x.cpu().double().mean().item()
    x = _own(rank, 2)
    dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM(0.5))
    found["premul"] = _listed(x)
    x = taeda.tensor([rank == 0, False], device=DEVICE)
    dist.all_reduce(x)
    found["bool"] = _listed(x)
    x = taeda.tensor([1 + 1j * rank], device=DEVICE)
    dist.all_reduce(x)
    found["complex"] = _listed(x)
    try:
        dist.all_reduce(_own(rank, 1, dtype=taeda.int32), dist.ReduceOp.BXOR)
    except ValueError as error:
        found["refused"] = str(error)
    dist.destroy_process_group()
    return found


def movements(rank: int, world: int) -> dict:
    """Every collective that moves values, messages and batches of them."""
    join(".", rank, world)
    found: dict = {}
    mine = _own(rank, 2)
    outs = [taeda.zeros(2, device=DEVICE) for _ in range(world)]
    dist.all_gather(outs, mine)
    found["all_gather"] = [_listed(o) for o in outs]
    x = _own(rank, 70_000, dtype=taeda.int64)
    dist.broadcast(x, 1)
    found["broadcast"] = x.cpu().unique().tolist()
    outs = [taeda.zeros(2, device=DEVICE) for _ in range(world)] if rank == 1 else None
    dist.gather(mine, outs, dst=1)
    found["gather"] = [_listed(o) for o in outs or []]
    parts = [_own(10 + r, 2) for r in range(world)] if rank == 0 else None
    out = taeda.zeros(2, device=DEVICE)
    dist.scatter(out, parts, src=0)
    found["scatter"] = _listed(out)
    dist.reduce_scatter(out, [_own(r, 2) for r in range(world)])
    found["reduce_scatter"] = _listed(out)
    x = _own(rank, 3)
    dist.reduce(x, 0)
    found["reduce"] = _listed(x) if rank == 0 else None
    out = taeda.zeros(world + 1, device=DEVICE)
    ins = [1] * world
    ins[(rank + 1) % world] = 2
    outs = [1] * world
    outs[(rank - 1) % world] = 2
    dist.all_to_all_single(out, _own(rank, world + 1), outs, ins)
    found["all_to_all"] = sorted(_listed(out))
    found["objects"] = [None] * world
    dist.all_gather_object(found["objects"], rank)
    _messages(rank, world, found)
    dist.barrier()
    dist.destroy_process_group()
    return found


def _messages(rank: int, world: int, found: dict) -> None:
    if rank == 0:
        dist.send(_own(6, 3), 1)
    elif rank == 1:
        x = taeda.zeros(3, device=DEVICE)
        dist.recv(x, 0)
        found["message"] = _listed(x)
    x = taeda.zeros(50_000, device=DEVICE)
    operations = [
        dist.P2POp(dist.isend, _own(rank, 50_000), (rank + 1) % world),
        dist.P2POp(dist.irecv, x, (rank - 1) % world),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    found["batch"] = x.cpu().mean().item()


def streams(rank: int, world: int) -> dict:
    """What is waited for by the stream; a work knows its end; groups and splits."""
    join(".", rank, world)
    found: dict = {}
    x = _own(rank, 100_000)
    for _ in range(3):
        x.mul_(2)
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        x.div_(2 * world)
    found["ordered"] = x.cpu().mean().item()
    found["ended"] = work.is_completed() and work.is_success()
    future = dist.all_reduce(_own(rank, 1), async_op=True).get_future()
    found["future"] = _listed(future.then(lambda f: f.value()[0] * 2).wait())
    time.sleep(0.3)
    entry = _distributed.flight_record()[-1]
    found["recorded"] = entry["collective"], entry["bytes"], entry["state"]
    group = dist.new_group([0, world - 1])
    if rank in (0, world - 1):
        x = _own(rank, 1)
        dist.all_reduce(x, group=group)
        found["group"] = _listed(x)
    found["split"] = _split(rank, world)
    dist.destroy_process_group()
    return found


def _split(rank: int, world: int) -> list | None:
    parent = dist.group.WORLD._get_backend(taeda.device(DEVICE))
    if rank == world - 1:
        parent.perform_nocolor_split(taeda.device(DEVICE, 0))
        return None
    options = dist.ProcessGroupNCCL.Options()
    options.split_from, options.split_color = parent, 3
    half = dist.ProcessGroupNCCL(dist.HashStore(), rank, world - 1, options)
    x = _own(rank, 2)
    half.allreduce([x], dist.distributed_c10d.AllreduceOptions()).wait()
    told = _listed(x)
    half.shutdown()
    return told


def training(rank: int, world: int) -> list:
    """Weights after training over the ranks' parts of each batch."""
    join(".", rank, world)
    model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.Linear(8, 2))
    with taeda.no_grad():
        for i, p in enumerate(model.parameters()):
            noise = np.random.RandomState(i).standard_normal(tuple(p.shape))
            p.copy_(taeda.tensor(noise))
    model = model.to(DEVICE)
    wrapped = DistributedDataParallel(model) if world > 1 else model
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1, foreach=False, fused=False)
    for step in range(3):
        x = np.random.RandomState(50 + step).standard_normal((6, 4))
        part = slice(rank * 6 // world, (rank + 1) * 6 // world)
        wrapped(taeda.tensor(x[part]).float().to(DEVICE)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = [_listed(p) for p in model.parameters()]
    dist.destroy_process_group()
    return weights


def late(rank: int, world: int) -> str:
    """Rank 1 never comes to the second collective."""
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "2"
    os.environ["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1"
    os.environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] = str(Path.cwd() / "trace")
    join(".", rank, world, 2.0)
    dist.barrier()
    if rank == 1:
        while not Path("told").exists():
            time.sleep(0.01)
        return "waited"
    try:
        dist.all_reduce(_own(rank, 3))
        while True:
            taeda.cuda.synchronize()
            time.sleep(0.05)
            dist.all_reduce(_own(rank, 3))
    except dist.DistBackendError as error:
        with open("trace0", "rb") as file:
            states = [e["state"] for e in pickle.load(file)["entries"]]
        Path("told").touch()
        return f"{error} {states}"


def torn_down(rank: int, world: int) -> str:
    """As PyTorch does by default, a rank that waits too long is ended."""
    join(".", rank, world, 1.0)
    dist.barrier()
    if rank == 0:
        is_ending(rank)
        dist.all_reduce(_own(rank, 3))
        time.sleep(30)
    return "waited"


def absent(rank: int, world: int) -> str:
    """Rank 1 does not come to the first collective."""
    join(".", rank, world, 1.0)
    if rank == 1:
        return "away"
    try:
        dist.all_reduce(_own(rank, 3))
    except dist.DistBackendError as error:
        return str(error)
    return "nothing was raised"
