"""Training that is recorded over the fake backend, and measured with real ranks.

    python -m tools.simulate.trainee KIND RANK WORLD FOLDER STEPS record|measure SHAPE

`record` writes this rank's schedule, `measure` the seconds of a step; of STEPS steps,
or means of several, the one that was faster than three of four, since other programs
take cores. SHAPE is as of `settings.Shape`.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed._fake import FakeBackend, FakeRecord, FakeStore
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from taeda.distributed.pipelining._exchange import _HEAD, _describe

from . import events
from .cores import Cores
from .machine import before_others
from .settings import Shape

BATCHES = 8  # of a pipeline
WARM_UP = 3
# Steps between two times: to a rank that waits for a core they are long and short.
TOGETHER = 6


def blocks(width: int, count: int) -> nn.Sequential:
    """Layers of which each is gathered, or lies on a stage, as a whole."""
    taeda.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(count):
        layers.append(nn.Sequential(nn.Linear(width, width), nn.GELU()))
    return nn.Sequential(*layers)


def data_parallel(kind: str, shape: Shape):
    """The parameters, and a function that makes their gradients."""
    model = blocks(shape.width, shape.layers)
    if kind == "ddp":
        called: nn.Module = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4)
    else:
        for block in model:
            fully_shard(block)
        called = fully_shard(model)
    x = taeda.randn(shape.rows, shape.width)
    return model.parameters(), lambda: called(x).square().mean().backward()


def pipeline(kind: str, rank: int, world: int, shape: Shape):
    """As above, of a stage."""
    first, last = (shape.layers * r // world for r in (rank, rank + 1))
    part = blocks(shape.width, last - first)
    stage = PipelineStage(part, rank, world, taeda.device("cpu"))
    maker = ScheduleGPipe if kind == "gpipe" else Schedule1F1B
    schedule = maker(stage, BATCHES, loss_fn=nn.functional.mse_loss)
    x = taeda.randn(shape.rows, shape.width)

    def step() -> None:
        given = (x,) if rank == 0 else ()
        schedule.step(*given, **({"target": x} if rank == world - 1 else {}))

    return part.parameters(), step


class Answering(FakeBackend):
    """Ranks that share cores; messages of a pipeline's neighbours are a head and
    activations of one shape."""

    cores: Cores
    shape: Shape

    def _begins(self, kind: str, number: int, peer: int) -> None:
        self.cores.call(kind, number, peer)

    def _waits(self, number: int) -> None:
        self.cores.wait(number)

    def recv(self, tensors, srcRank: int, tag: int):
        work = super().recv(tensors, srcRank, tag)
        tensor = tensors[0]
        if tensor.dtype == taeda.int64:
            rows, width = self.shape.rows // BATCHES, self.shape.width
            sent = taeda.empty(rows, width, requires_grad=True)
            head = _describe([sent])
            tensor.copy_(taeda.tensor(head + [0] * (_HEAD - len(head))))
        else:
            tensor.fill_(0.5)
        return work


def join(rank: int, world: int, folder: Path, recorded: Shape | None) -> None:
    """Makes the group; one that answers of itself for a shape that is recorded."""
    if recorded is not None:
        Answering.cores, Answering.shape = Cores(folder, rank), recorded
        Answering.cores.join()
        dist.Backend.register_backend(
            "answering",
            lambda store, r, n, limit: Answering(r, n, "0"),
            devices=["cpu"],
        )
        store: dist.Store = FakeStore()
        dist.init_process_group("answering", rank=rank, world_size=world, store=store)
        return
    store = dist.FileStore(str(folder / "meeting"), world)
    limit = timedelta(seconds=60)
    dist.init_process_group(
        "gloo", rank=rank, world_size=world, store=store, timeout=limit
    )


def main() -> None:
    """Runs one rank."""
    kind, rank, world, folder, steps = sys.argv[1:6]
    record, shape = sys.argv[6] == "record", Shape.parse(sys.argv[7])
    place = Path(folder)
    before_others()
    taeda.set_num_threads(1)
    join(int(rank), int(world), place, shape if record else None)
    if kind in ("ddp", "fsdp"):
        parameters, step = data_parallel(kind, shape)
    else:
        parameters, step = pipeline(kind, int(rank), int(world), shape)
    optimizer = taeda.optim.SGD(parameters, lr=1e-3)
    ends, schedules = [], []
    for number in range(WARM_UP + int(steps)):
        with FakeRecord() as calls:
            begin = time.perf_counter()
            optimizer.zero_grad()
            step()
            optimizer.step()
            end = time.perf_counter()
        if number >= WARM_UP:
            ends.append(end)
            schedules.append(events.from_record(calls.calls, begin, end))
    if record:
        Answering.cores.leave()
        events.save(events.typical(schedules), place / f"schedule.{rank}")
    else:
        dist.barrier()
        passed = zip(ends, ends[TOGETHER:], strict=False)
        means = sorted((b - a) / TOGETHER for a, b in passed)
        (place / f"seconds.{rank}").write_text(str(means[len(means) // 4]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
