"""Trains the GPT of char_gpt.py on several processes, with the losses of one.

    python docs/examples/char_gpt_parallel.py
    taedarun --nproc-per-node=2 \\
        docs/examples/char_gpt_parallel.py --parallel fsdp

| --parallel | what is spread |
|---|---|
| ddp | the batch; every rank has the model |
| fsdp | the batch; parameters, gradients and moments by rows (`fully_shard`) |
| tp | the layers' matrices, by columns and rows; every rank sees the batch |
| pp | the blocks: each rank has some, micro-batches go through all |
| 2d | tp within rows of a mesh, fsdp between them (4 processes) |

tp and 2d cut matrices in equal parts: on 2 or 4 processes.

Every rank draws the same global batches. A checkpoint is written every `--every` steps
(`distributed.checkpoint`); a run that is started again goes on from the last one, also
on another number of processes. `--crash-at` ends one rank, for the launcher's sake.
"""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path

import char_gpt
import taeda as T
import taeda.distributed as dist
from taeda.distributed import checkpoint
from taeda.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.fsdp import fully_shard
from taeda.distributed.pipelining import PipelineStage, ScheduleGPipe
from taeda.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

nn, F = T.nn, T.nn.functional

SIZE = char_gpt.Size(
    layers=2, heads=2, width=32, context=32, batch=8, steps=20, learning_rate=3e-3
)


def mean_loss(logits, targets):
    """Mean cross-entropy in nats a character."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Spread:
    """Data parallel, tensor parallel, or both: every rank runs the whole model.

    Args:
        kind: none, ddp, fsdp, tp or 2d.
        model: the same at all ranks.
    """

    def __init__(self, kind: str, model: nn.Module) -> None:
        ranks = dist.get_world_size()
        if kind == "2d" and ranks % 2:
            raise ValueError(f"2d: two rows need an even number of ranks, got {ranks}")
        rows = {"tp": 1, "2d": 2}.get(kind, ranks)
        mesh = init_device_mesh(
            "cpu", (rows, ranks // rows), mesh_dim_names=("dp", "tp")
        )
        self.plain, self.parts = model, mesh["dp"]
        if kind in ("tp", "2d"):
            for block in model.blocks:
                parallelize_module(block, mesh["tp"], _cuts())
        if kind in ("fsdp", "2d"):
            for block in model.blocks:
                fully_shard(block, mesh=mesh["dp"])
            fully_shard(model, mesh=mesh["dp"])
        self.model = (
            nn.parallel.DistributedDataParallel(model) if kind == "ddp" else model
        )

    def step(self, inputs, targets) -> float:
        """Gradients of the mean over the batch; returns it."""
        rank, ranks = self.parts.get_local_rank(), self.parts.size()
        rows, wanted = (x.tensor_split(ranks)[rank] for x in (inputs, targets))
        # Gradients are averaged over ranks, of which some may have a row less.
        share = len(rows) * ranks / len(inputs)
        loss = mean_loss(self.model(rows), wanted) * share
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total, dist.ReduceOp.AVG, group=self.parts.get_group())
        return total.item()


def _cuts() -> dict:
    """Which matrices of a block are cut, and how."""
    whole = T.distributed.tensor.Replicate()
    return {
        "qkv": ColwiseParallel(output_layouts=whole),
        "proj": RowwiseParallel(input_layouts=whole),
        "up": ColwiseParallel(),
        "down": RowwiseParallel(),
    }


class Part(nn.Module):
    """One stage of embedding, blocks and output, which count as much as a block."""

    def __init__(self, model: char_gpt.GPT, rank: int, ranks: int) -> None:
        super().__init__()
        self.is_first, self.is_last = rank == 0, rank == ranks - 1
        blocks = len(model.blocks)
        parts = blocks + 2
        if ranks > parts:
            raise ValueError(f"{ranks} stages, but the model has {parts} parts")
        own = range(parts * rank // ranks, parts * (rank + 1) // ranks)
        self.blocks = nn.ModuleDict(
            {str(i - 1): model.blocks[i - 1] for i in own if 1 <= i <= blocks}
        )
        if self.is_first or self.is_last:
            self.tokens = model.tokens
        if self.is_first:
            self.positions = model.positions
        if self.is_last:
            self.norm = model.norm

    def forward(self, x):
        if self.is_first:
            x = self.tokens(x) + self.positions(T.arange(x.shape[1]))
        for block in self.blocks.values():
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight) if self.is_last else x


class Pipeline:
    """Each rank runs its part of the model; both ends have the embedding."""

    def __init__(self, model: char_gpt.GPT) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.plain = Part(model, rank, ranks)
        self.ends = dist.new_group([0, ranks - 1])
        stage = PipelineStage(self.plain, rank, ranks, T.device("cpu"))
        self.schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=mean_loss)

    def step(self, inputs, targets) -> float:
        """Gradients of the mean over the batch; returns it."""
        losses: list = []
        given = (inputs,) if self.plain.is_first else ()
        wanted = {"target": targets, "losses": losses} if self.plain.is_last else {}
        self.schedule.step(*given, **wanted)
        if self.plain.is_first or self.plain.is_last:
            # One parameter in two places: its gradient is the sum of both.
            dist.all_reduce(self.plain.tokens.weight.grad, group=self.ends)
        total = T.stack(losses).detach().mean() if losses else T.zeros(())
        dist.broadcast(total, dist.get_world_size() - 1)
        return total.item()


def train(options: argparse.Namespace) -> list[float]:
    """The losses of all steps of this run."""
    T.manual_seed(0)
    model = char_gpt.GPT(SIZE)
    kind = options.parallel
    way = Pipeline(model) if kind == "pp" else Spread(kind, model)
    optimizer = T.optim.AdamW(way.plain.parameters(), lr=SIZE.learning_rate)
    text, _ = char_gpt.load_text(200_000)
    first, losses = 0, []
    if (options.out / ".metadata").exists():
        first = load(way.plain, optimizer, options.out)
    for step in range(options.steps):
        generator = T.Generator().manual_seed(step)
        inputs, targets = char_gpt.batch_of(text, SIZE, generator)
        if step < first:
            continue
        if step == options.crash_at and first == 0 and dist.get_rank() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        losses.append(way.step(inputs, targets))
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step} loss {losses[-1]:.6f}", flush=True)
        if options.every and (step + 1) % options.every == 0:
            save(way.plain, optimizer, step + 1, options.out)
    return losses


def save(model: nn.Module, optimizer, step: int, path: Path) -> None:
    """Writes a checkpoint; all ranks call it."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": T.tensor(step)}
    checkpoint.save(state, checkpoint_id=path)


def load(model: nn.Module, optimizer, path: Path) -> int:
    """Takes over a checkpoint; returns how many steps it has seen."""
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": T.tensor(0)}
    checkpoint.load(state, checkpoint_id=path)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
    return int(state["step"])


def main() -> None:
    """Trains as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kinds = ["none", "ddp", "fsdp", "tp", "pp", "2d"]
    parser.add_argument("--parallel", choices=kinds, default="none")
    parser.add_argument("--steps", type=int, default=SIZE.steps)
    parser.add_argument(
        "--every", type=int, default=0, help="steps between checkpoints"
    )
    parser.add_argument("--out", type=Path, default=Path("char_gpt_out/parallel"))
    parser.add_argument("--crash-at", type=int, default=-1)
    options = parser.parse_args()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        store = dist.HashStore()
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    T.set_num_threads(1)
    train(options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
