"""Functional collectives whose results are used before, while and after they end."""

from __future__ import annotations

import copy
import pickle
import time
from pathlib import Path

import numpy as np
import taeda
import taeda.distributed as dist
from ranks import join
from taeda.distributed import _functional_collectives as functional

Waits = functional.AsyncCollectiveTensor


def _after(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.005)


def before_the_end(rank: int, world: int):
    """Rank 1 takes part when rank 0 says that its calls have returned."""
    join(".", rank, world, 10.0)
    pg = dist.group.WORLD
    if rank > 0:
        _after("returned")
    x = taeda.arange(4.0) + rank
    summed = functional.all_reduce(x, "sum", pg)
    whole = functional.all_gather_tensor(x, 0, pg)
    own = functional.reduce_scatter_tensor(x, "sum", 0, pg)
    sent = functional.all_to_all_single(x, None, None, pg)
    told = functional.broadcast(x, 1, pg)
    every = [summed, whole, own, sent, told]
    open_ = [type(t) is Waits and not t.completed for t in every]
    seen = [summed.view(2, 2), summed[1:], summed.detach(), whole.chunk(2)[1]]
    lazy = [type(t) is Waits and not t.completed for t in seen]
    shapes = [tuple(t.shape) for t in every]
    Path("returned").touch()
    return {
        "open": open_ if rank == 0 else None,
        "lazy": lazy if rank == 0 else None,
        "shapes": shapes,
        "seen": [t.tolist() for t in seen],
        "values": [t.tolist() for t in every],
        "over": all(t.completed for t in (*every, *seen)),
        "input": x.tolist(),
    }


def used(rank: int, world: int):
    """All that programs do with results waits for them."""
    join(".", rank, world)
    pg = dist.group.WORLD

    def new():
        return functional.all_reduce(taeda.tensor([1.0, 2.0]), "sum", pg)

    into = taeda.zeros(2)
    written = new()
    written.add_(1)
    return {
        "plain": type(functional.wait_tensor(new())) is taeda.Tensor,
        "kept": functional.wait_tensor(into) is into,
        "add": (new() + 1).tolist(),
        "type": type(new() * 2) is taeda.Tensor,
        "into": into.copy_(new()).tolist(),
        "written": written.tolist(),
        "item": new()[0].item(),
        "numpy": new().numpy().tolist(),
        "asarray": np.asarray(new()).tolist(),
        "text": repr(new()),
        "pickled": pickle.loads(pickle.dumps(new())).tolist(),
        "copied": copy.deepcopy(new()).tolist(),
        "again": functional.all_reduce(new(), "sum", pg).tolist(),
        "chained": functional.all_gather_tensor(
            functional.all_to_all_single(
                functional.reduce_scatter_tensor(
                    functional.broadcast(new().view(2, 1), 0, pg), "sum", 0, pg
                ).expand(2, 1),
                None,
                None,
                pg,
            ),
            0,
            pg,
        ).tolist(),
        "cat": taeda.cat([new(), new()]).tolist(),
        "several": [
            t.tolist() for t in functional.all_reduce_coalesced([into, into], "max", pg)
        ],
        "bool": bool((new() > 0).all()),
    }


def gradients(rank: int, world: int):
    """Results with gradients wait as well."""
    join(".", rank, world)
    x = taeda.tensor([1.0 + rank, 2.0], requires_grad=True)
    whole = functional.all_gather_tensor_autograd(x, 0, dist.group.WORLD)
    (whole * taeda.arange(4.0)).sum().backward()
    return whole.tolist(), x.grad.tolist()


def failed(rank: int, world: int):
    """An error is raised by the first use, and by later ones."""
    join(".", rank, world, 1.0)
    if rank > 0:
        _after("told")
        return "waited"
    result = functional.all_reduce(taeda.ones(2), "sum", dist.group.WORLD)
    texts = []
    for _ in range(2):
        try:
            texts.append((result + 1).tolist())
        except dist.DistBackendError as error:
            texts.append(str(error))
    Path("told").touch()
    return texts


def traced(rank: int, world: int):
    """Programs with collectives are compiled whole, and noted by who traces."""
    from taeda.fx.experimental.proxy_tensor import make_fx

    join(".", rank, world)

    def program(x):
        pg = dist.group.WORLD
        y = functional.wait_tensor(functional.all_reduce(x * 2, "sum", pg))
        y = functional.all_gather_tensor(y + rank, 1, pg)
        y = functional.reduce_scatter_tensor(y, "avg", 1, pg)
        y = functional.broadcast(y, 1, pg)
        return functional.all_to_all_single(y, None, None, pg) + 1

    x = taeda.arange(8.0).view(4, 2) * (rank + 1)
    graph = make_fx(program, tracing_mode="fake")(x).graph
    names = [str(n.target) for n in graph.nodes if "c10d" in str(n.target)]
    compiled = taeda.compile(program, fullgraph=True)
    return program(x).tolist(), compiled(x).tolist(), compiled(x + 1).tolist(), names


def captured_together(rank: int, world: int):
    """How often a rank captures when only the other has a new graph to make."""
    join(".", rank, world)
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    taeda.compiler.set_enable_guard_collectives(True)
    compiled = taeda.compile(lambda x: x + 1, backend=backend, dynamic=False)
    counts = []
    for size in (2, 2, 2 + rank, 2):
        compiled(taeda.ones(size))
        counts.append(len(graphs))
    return counts
