"""What ranks do while the campaign's faults hit them.

    python campaign_programs.py PROGRAM FOLDER SECONDS STEPS LIMIT JOINING

Rank, number of ranks and meeting place come from the environment, as the launcher sets
them. A program goes on for SECONDS, or, where it trains, for STEPS if that is not 0.
JOINING is the limit of the first round, LIMIT of each collective after it. What a rank
ended with stands in `end.RANK`.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed import checkpoint, distributed_c10d
from taeda.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)

SIZES = (1, 5_000, 300_000)
# Stages have different parameters, whose settings have to be named one by one.
OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)
EVERY = 5  # steps between checkpoints
WIDTH, ROWS = 48, 24  # both are divided by 2, 3 and 4 ranks


class Wrong(Exception):
    """A collective gave other values than those of its definition."""


def expect(found, value: float, what: str) -> None:
    """Raises where an element is not `value`."""
    if not bool((found == value).all()):
        raise Wrong(f"{what}: expected {value}, got {found.min()} to {found.max()}")


def ready() -> None:
    """Says that this rank has done a round; the limit is the case's from now on."""
    limit = timedelta(seconds=float(sys.argv[5]))
    distributed_c10d._set_pg_timeout(limit)
    Path(f"ready.{dist.get_rank()}").touch()


def rounds(seconds: float) -> Iterator[int]:
    """Numbers, until the ranks agree that the time is over."""
    end = time.monotonic() + seconds
    for turn in itertools.count():
        yield turn
        if turn == 0:
            ready()
        over = taeda.tensor([float(time.monotonic() > end)])
        dist.all_reduce(over, dist.ReduceOp.MAX)
        if over.item():
            return


def all_reduce(rank: int, world: int, size: int) -> None:
    x = taeda.full((size,), rank + 1.0)
    dist.all_reduce(x)
    expect(x, world * (world + 1) / 2, "all_reduce")


def all_gather(rank: int, world: int, size: int) -> None:
    outs = [taeda.zeros(size) for _ in range(world)]
    dist.all_gather(outs, taeda.full((size,), float(rank)))
    for r, out in enumerate(outs):
        expect(out, r, "all_gather")


def reduce_scatter(rank: int, world: int, size: int) -> None:
    out = taeda.zeros(size)
    dist.reduce_scatter(out, [taeda.full((size,), r + 1.0) for r in range(world)])
    expect(out, world * (rank + 1.0), "reduce_scatter")


def broadcast(rank: int, world: int, size: int) -> None:
    x = taeda.full((size,), float(rank))
    dist.broadcast(x, world - 1)
    expect(x, world - 1, "broadcast")


def all_to_all(rank: int, world: int, size: int) -> None:
    outs = [taeda.zeros(size) for _ in range(world)]
    ins = [taeda.full((size,), 10.0 * rank + r) for r in range(world)]
    dist.all_to_all(outs, ins)
    for r, out in enumerate(outs):
        expect(out, 10.0 * r + rank, "all_to_all")


def later(rank: int, world: int, size: int) -> None:
    """Several that are called before the first is waited for."""
    xs = [taeda.full((size,), 1.0) for _ in range(3)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for work, x in zip(works, xs, strict=True):
        work.wait()
        expect(x, world, "all_reduce")


def objects(rank: int, world: int, size: int) -> None:
    found: list = [None] * world
    dist.all_gather_object(found, {"rank": rank, "text": "x" * (size // 100)})
    if [each["rank"] for each in found] != list(range(world)):
        raise Wrong(f"all_gather_object: {found}")


CALLS = (
    all_reduce,
    all_gather,
    reduce_scatter,
    broadcast,
    all_to_all,
    later,
    objects,
)


def collectives(seconds: float) -> None:
    """Collectives of all kinds and sizes, in an order that ranks agree on."""
    rank, world = dist.get_rank(), dist.get_world_size()
    for turn in rounds(seconds):
        draw = random.Random(turn)
        draw.choice(CALLS)(rank, world, draw.choice(SIZES))


def messages(seconds: float) -> None:
    """Tensors around a ring."""
    rank, world = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world, (rank - 1) % world
    for turn in rounds(seconds):
        size = random.Random(turn).choice(SIZES)
        other = taeda.zeros(size)
        work = dist.isend(taeda.full((size,), float(rank)), right, tag=turn % 7)
        dist.recv(other, left, tag=turn % 7)
        work.wait()
        expect(other, left, "recv")


# Training: the state after a number of steps is the same for every kind.


def model_of() -> nn.Sequential:
    """The network before the first step."""
    taeda.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Linear(WIDTH, WIDTH), nn.Tanh()]
    return nn.Sequential(*layers).double()


def optimizer_of(model: nn.Module):
    """What every kind of training uses."""
    return taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batch_of(step: int):
    """The global batch of a step."""
    generator = taeda.Generator().manual_seed(step)
    shape = (ROWS, WIDTH)
    options = {"generator": generator, "dtype": taeda.float64}
    return taeda.randn(shape, **options), taeda.rand(shape, **options)


class Part(nn.Module):
    """Some layers of the network, under the names that they have there."""

    def __init__(self, model: nn.Sequential, rank: int, world: int) -> None:
        super().__init__()
        count = len(model)
        for i in range(count * rank // world, count * (rank + 1) // world):
            self.add_module(str(i), model[i])

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


def pipeline_of(model: nn.Sequential):
    """This rank's layers, and a function that runs one step of the schedule."""
    from taeda.distributed.pipelining import PipelineStage, ScheduleGPipe

    rank, world = dist.get_rank(), dist.get_world_size()
    part = Part(model, rank, world)
    stage = PipelineStage(part, rank, world, taeda.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=nn.functional.mse_loss)

    def step(x, y) -> None:
        given = (x,) if rank == 0 else ()
        schedule.step(*given, **({"target": y} if rank == world - 1 else {}))

    return part, step


def tensor_parallel(model: nn.Sequential):
    """The layers' matrices by columns and rows, in turns; every rank has all rows."""
    from taeda.distributed.tensor import parallel

    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    ways = parallel.ColwiseParallel, parallel.RowwiseParallel
    linear = [name for name, m in model.named_children() if isinstance(m, nn.Linear)]
    plan = {name: ways[i % 2]() for i, name in enumerate(linear)}
    parallel.parallelize_module(model, mesh, plan)

    def step(x, y) -> None:
        nn.functional.mse_loss(model(x), y).backward()

    return model, step


def spread(kind: str, model: nn.Sequential):
    """The module whose state is saved, and a function that makes gradients."""
    from taeda.distributed.fsdp import fully_shard

    if kind == "pipeline":
        return pipeline_of(model)
    if kind == "tensor":
        return tensor_parallel(model)
    rank, world = dist.get_rank(), dist.get_world_size()
    called: nn.Module = model
    if kind == "fsdp":
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        fully_shard(model)
    else:
        called = nn.parallel.DistributedDataParallel(model)

    def step(x, y) -> None:
        x, y = x.chunk(world)[rank], y.chunk(world)[rank]
        nn.functional.mse_loss(called(x), y).backward()

    return model, step


def state_of(model: nn.Module, optimizer, step: int) -> dict:
    """What a checkpoint holds; `stamp` is as many numbers of the step."""
    weights, moments = get_state_dict(model, optimizer, options=OPTIONS)
    stamp = taeda.full((1000,), step)
    return {"model": weights, "optimizer": moments, "stamp": stamp}


class Saver:
    """Saves, also beside the training; `saved` tells the last step that is safe.

    Args:
        beside: whether the next step does not wait for a save.
    """

    def __init__(self, beside: bool) -> None:
        self._beside, self._pending = beside, None
        self._folder, self._step = Path("checkpoint"), 0

    def save(self, state: dict, step: int) -> None:
        """Begins a save, after the end of the one before."""
        self.finish()
        self._step = step
        if self._beside:
            self._pending = checkpoint.async_save(state, checkpoint_id=self._folder)
        else:
            checkpoint.save(state, checkpoint_id=self._folder)
            self._tell()

    def finish(self) -> None:
        """Waits for what has begun."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()
            self._tell()

    def _tell(self) -> None:
        if dist.get_rank() == 0:
            Path("saved.new").write_text(str(self._step))
            Path("saved.new").rename("saved")


def load(model: nn.Module, optimizer, folder: Path) -> int:
    """Takes over the last checkpoint, and returns its step; 0 without one."""
    if not (folder / ".metadata").exists():
        return 0
    state = state_of(model, optimizer, 0)
    checkpoint.load(state, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=OPTIONS,
    )
    expect(state["stamp"], int(state["stamp"][0]), "the checkpoint's stamp")
    return int(state["stamp"][0])


def train(kind: str, seconds: float, steps: int) -> None:
    """Trains, and saves every few steps; goes on from what is there."""
    model, step_of = spread(kind, model_of())
    optimizer, saver = optimizer_of(model), Saver(kind == "beside")
    first = load(model, optimizer, Path("checkpoint"))
    turns = range(steps - first) if steps else rounds(seconds)
    for done, turn in enumerate(turns, first + 1):
        optimizer.zero_grad()
        step_of(*batch_of(first + turn))
        optimizer.step()
        if done == first + 1:
            ready()
        if done % EVERY == 0:
            saver.save(state_of(model, optimizer, done), done)
    saver.finish()


class Asked(Exception):
    """The campaign has this rank fail in its own code."""


def _fail(_number, _frame) -> None:
    raise Asked("a worker's own error")


def main() -> None:
    """Runs one program, and tells how it ended."""
    program, folder = sys.argv[1:3]
    seconds, steps = float(sys.argv[3]), int(sys.argv[4])
    os.chdir(folder)
    rank, error = os.environ["RANK"], None
    signal.signal(signal.SIGUSR1, _fail)
    taeda.set_num_threads(1)
    Path(f"pid.{rank}").write_text(str(os.getpid()))
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=float(sys.argv[6])))
        if program in ("collectives", "messages"):
            {"collectives": collectives, "messages": messages}[program](seconds)
        else:
            train(program, seconds, steps)
        # Who leaves first would be lost to those that still work.
        dist.barrier()
    except (Exception, checkpoint.CheckpointException) as raised:
        traceback.print_exc()
        error = f"{type(raised).__name__}: {raised}"
    told = {"error": error, "at": time.monotonic()}
    Path(f"new.{rank}").write_text(json.dumps(told))
    Path(f"new.{rank}").rename(f"end.{rank}")
    if error is not None:
        sys.exit(1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
