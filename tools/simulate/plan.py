"""The schedule of Llama 3 8B under `fully_shard`, recorded without its weights.

A small model with as many blocks, and the same share of its parameters in each, runs a
step over the fake backend; bytes are then those of the large one. What it computes is
counted, not timed: a forward pass takes two operations for a parameter and token, a
backward pass four. Each block is gathered while the one before it computes.
"""

from __future__ import annotations

import itertools
import time

import taeda
import taeda.distributed as dist
from taeda import nn
from taeda.distributed._fake import FakeCall, FakeRecord, FakeStore
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from .events import Call, Compute, Event, Wait

__all__ = ["llama3_8b"]

BLOCKS = 32
# Attention of 4096 with 1024 for keys and values, three matrices of 4096 x 14336.
BLOCK = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
ENDS = 2 * 128_256 * 4096  # the embedding and the output
WIDTH, INNER = 32, 128


class _Counted(taeda.autograd.Function):
    """The same tensor; records tell of a part's computing, twice as much on the way
    back."""

    @staticmethod
    def forward(ctx, x, parameters: int):
        ctx.parameters = parameters
        _note(2 * parameters)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        _note(4 * ctx.parameters)
        return gradient, None


def _note(operations: int) -> None:
    now = time.perf_counter()
    FakeRecord.note(FakeCall("compute", 0, "", 0, operations, now, now))


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        y = self.down(nn.functional.silu(self.up(x)))
        return _Counted.apply(x + y, BLOCK)


class _Head(nn.Linear):
    def forward(self, x):
        return _Counted.apply(super().forward(x), ENDS // 2)


def _model(mesh) -> nn.Module:
    own = 2 * WIDTH * INNER
    vocabulary = round(ENDS / BLOCK * own / (2 * WIDTH))
    blocks = [_Block() for _ in range(BLOCKS)]
    model = nn.Sequential(
        nn.Embedding(vocabulary, WIDTH),
        *blocks,
        _Head(WIDTH, vocabulary, bias=False),
    )
    dtypes = MixedPrecisionPolicy(
        param_dtype=taeda.bfloat16, reduce_dtype=taeda.float32
    )
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=dtypes)
    for block, following in itertools.pairwise(blocks):
        block.set_modules_to_forward_prefetch([following])
    return fully_shard(model, mesh=mesh, mp_policy=dtypes)


def llama3_8b(copies: bool = False) -> list[Event]:
    """A rank's step, with the groups "shard" and, of hybrid sharding, "copies";
    computing times are in operations.

    Args:
        copies: whether there are several sets of parameters.

    Raises:
        RuntimeError: this process has a process group.
    """
    if dist.is_initialized():
        raise RuntimeError("llama3_8b: this process has a process group already")
    world = 16 if copies else 8
    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    try:
        sizes, names = ((2, 8), ("copies", "shard")) if copies else ((8,), ("shard",))
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=names)
        model = _model(mesh)
        tokens = taeda.zeros(1, 4, dtype=taeda.int64)
        known = {mesh[name].get_group().group_name: name for name in names}
        # The first step makes what later ones have.
        for _ in range(2):
            with FakeRecord() as record:
                model(tokens).float().square().mean().backward()
    finally:
        dist.destroy_process_group()
    return [_event(call, known) for call in record.calls]


def _event(call: FakeCall, known: dict[str, str]) -> Event:
    """What an entry of the small model's record is in the large one; computing is in
    operations for a token."""
    if call.kind == "compute":
        return Compute(float(call.bytes))
    if call.kind == "wait":
        return Wait(call.number)
    count = round(call.bytes * BLOCK / (2 * WIDTH * INNER))
    group = known[call.group]
    return Call(call.kind, call.number, count, group, call.peer, call.later)
