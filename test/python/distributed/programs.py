"""What ranks do in the tests; each function runs at every rank."""

from __future__ import annotations

import copy
import gc
import os
import signal
import time
import weakref
from datetime import timedelta
from pathlib import Path

import numpy as np
import taeda
import taeda.distributed as dist
from ranks import is_ending, join
from taeda.nn.parallel import DistributedDataParallel

SIZES = (0, 1, 5, 5000, 300_001)


def values(rank: int, size: int, dtype: str = "float64") -> np.ndarray:
    """Small whole numbers, exact in each dtype and order."""
    return np.random.RandomState(rank + size).randint(1, 4, size).astype(dtype)


def own(rank: int, size: int, dtype: str = "float64"):
    return taeda.tensor(values(rank, size, dtype))


def reductions(rank: int, world: int) -> list:
    """Sums and others of each size; results of all dtypes."""
    join(".", rank, world)
    found = []
    for name in ("SUM", "PRODUCT", "MIN", "MAX", "AVG"):
        for size in SIZES:
            x = own(rank, size)
            dist.all_reduce(x, getattr(dist.ReduceOp, name))
            found.append((name, size, x.numpy().tolist()))
    for dtype in ("float16", "bfloat16", "int8", "int16", "int64", "uint8", "bool"):
        x = own(rank, 7).to(getattr(taeda, dtype))
        dist.all_reduce(x, dist.ReduceOp.MAX)
        found.append((dtype, 7, x.double().numpy().tolist()))
    x = own(rank, 6).view(2, 3).t()
    dist.all_reduce(x)
    found.append(("transposed", 6, x.reshape(-1).numpy().tolist()))
    x = own(rank, 5)
    dist.all_reduce(x, dist.ReduceOp.PREMUL_SUM(rank + 1.0))
    found.append(("premul", 5, x.numpy().tolist()))
    return found


def movements(rank: int, world: int) -> dict:
    """Every collective that moves values, at sizes of one step and of several."""
    join(".", rank, world)
    found: dict = {}
    for size in (3, 200_000):
        x = own(rank, size)
        outs = [taeda.zeros(size, dtype=taeda.float64) for _ in range(world)]
        dist.all_gather(outs, x)
        found["all_gather", size] = [o.sum().item() for o in outs]
        out = taeda.zeros(world * size, dtype=taeda.float64)
        dist.all_gather_into_tensor(out, x)
        found["into", size] = bool((taeda.cat(outs) == out).all())
        y = own(rank, size)
        dist.broadcast(y, 1)
        found["broadcast", size] = y.sum().item()
        given = outs if rank == 0 else None
        dist.gather(x, given, 0)
        found["gather", size] = [o.sum().item() for o in outs]
        part = taeda.zeros(size, dtype=taeda.float64)
        parts = [own(10 + r, size) for r in range(world)]
        dist.scatter(part, parts if rank == 1 else None, 1)
        found["scatter", size] = part.sum().item()
        dist.reduce_scatter(part, parts)
        found["reduce_scatter", size] = part.sum().item()
        ins = [own(10 * rank + r, size + r) for r in range(world)]
        outs = [taeda.zeros(size + rank, dtype=taeda.float64) for _ in range(world)]
        dist.all_to_all(outs, ins)
        found["all_to_all", size] = [o.sum().item() for o in outs]
        z = own(rank, size)
        dist.reduce(z, 1)
        found["reduce", size] = z.sum().item() if rank == 1 else None
    dist.barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=10))
    works = [dist.all_reduce(taeda.ones(1000), async_op=True) for _ in range(20)]
    found["async"] = [w.wait() for w in works] == [True] * 20
    objects: list = [None] * world
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * 1000 * rank})
    found["objects"] = [o["rank"] for o in objects]
    return found


def messages(rank: int, world: int) -> dict:
    """Tags, sizes beyond a ring's, any source, several at once."""
    join(".", rank, world)
    found: dict = {}
    if rank == 0:
        works = [dist.isend(taeda.full((n,), float(n)), 1, tag=n) for n in (3, 1, 2)]
        big = taeda.arange(500_000)
        works.append(dist.isend(big, 1, tag=9))
        for work in works:
            work.wait()
    if rank == 1:
        got = []
        for n in (1, 2, 3):
            x = taeda.zeros(n)
            dist.recv(x, 0, tag=n)
            got.append(x.tolist())
        found["tags"] = got
        x = taeda.zeros(500_000, dtype=taeda.int64)
        found["source"] = dist.recv(x, tag=9)
        found["big"] = bool((x == taeda.arange(500_000)).all())
    right, left = (rank + 1) % world, (rank - 1) % world
    mine, other = taeda.full((4,), float(rank)), taeda.zeros(4)
    ops = [dist.P2POp(dist.isend, mine, right), dist.P2POp(dist.irecv, other, left)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    found["ring"] = other.tolist()
    dist.barrier()
    return found


def in_order(rank: int, world: int) -> list[int]:
    """Sizes of messages of one tag, all sent before the first is waited for."""
    join(".", rank, world)
    sizes = [1 + i * 7919 % 2000 for i in range(200)]
    if rank == 0:
        tensors = [taeda.full((n,), float(n)) for n in sizes]
        for work in [dist.isend(x, 1) for x in tensors]:
            work.wait()
    found = []
    if rank == 1:
        for n in sizes:
            x = taeda.zeros(n)
            dist.recv(x, 0)
            found.append(int(x[0]) if bool((x == x[0]).all()) else -1)
    dist.barrier()
    return found


def groups(rank: int, world: int) -> dict:
    """Groups within the world, at once; leaving and coming back."""
    join(".", rank, world)
    mine, _ = dist.new_subgroups(2)
    other, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    x, y = taeda.tensor([2.0**rank]), taeda.tensor([2.0**rank])
    works = [
        dist.all_reduce(t, group=g, async_op=True) for t, g in ((x, mine), (y, other))
    ]
    for work in works:
        work.wait()
    found = {"sums": [x.item(), y.item()]}
    dist.barrier()
    dist.destroy_process_group()
    found["joined"] = dist.is_initialized()
    os.chdir("..")
    return found


def wrong_sizes(rank: int, world: int) -> list:
    """Messages that are longer and shorter than their receiver's tensor."""
    join(".", rank, world)
    found: list = []
    if rank == 0:
        for size in (5, 2, 100_000, 3):
            dist.isend(taeda.full((size,), size), 1)
    else:
        for _ in range(4):
            x = taeda.zeros(3, dtype=taeda.int64)
            try:
                dist.recv(x, 0)
                found.append(x.tolist())
            except dist.DistBackendError as error:
                found.append(str(error))
    dist.barrier()
    return found


def killed(rank: int, world: int, victim: int) -> str:
    """One rank dies between collectives; the others return what they raise."""
    join(".", rank, world)
    try:
        for turn in range(1000):
            if rank == victim and turn == 3:
                is_ending(rank)
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(taeda.ones(1000))
    except dist.DistBackendError as error:
        return str(error)
    return "nothing was raised"


def _appears(path: Path) -> str:
    """What a file has in it, once it is there."""
    end = time.monotonic() + 20
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.read_text()


def _tell(path: str, text: str = "") -> None:
    Path(f"{path}.new").write_text(text)
    Path(f"{path}.new").rename(path)


def stopped_server(rank: int, world: int) -> tuple[float, str]:
    """Rank 0, which has the store, is stopped while the others make a group.

    Returns:
        Seconds until they raised, and what.
    """
    port = 0 if rank == 0 else int(_appears(Path("port")))
    minute = timedelta(seconds=60)
    store = dist.TCPStore("127.0.0.1", port, None, rank == 0, timeout=minute)
    if rank == 0:
        _tell("port", str(store.port))
    options = {"rank": rank, "world_size": world, "timeout": minute}
    dist.init_process_group("gloo", store=store, **options)
    dist.barrier()
    if rank == 0:
        _tell("server", str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
        return 0.0, "went on"
    server = int(_appears(Path("server")))
    while Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    begin, told = time.monotonic(), "nothing was raised"
    try:
        dist.new_group(timeout=timedelta(seconds=1))
    except dist.DistError as error:
        told = str(error)
    seconds = time.monotonic() - begin
    _tell(f"told.{rank}")
    if rank == 1:
        for other in range(1, world):
            _appears(Path(f"told.{other}"))
        os.kill(server, signal.SIGCONT)
    return seconds, told


def disagreeing(rank: int, world: int) -> str:
    """Rank 0 calls another collective than the others."""
    join(".", rank, world, 5.0)
    x = taeda.ones(3)
    try:
        if rank == 0:
            dist.all_gather([taeda.zeros(3) for _ in range(world)], x)
        else:
            dist.all_reduce(x)
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def late(rank: int, world: int) -> str:
    """Rank 1 never comes to the second collective."""
    join(".", rank, world, 1.0)
    dist.barrier()
    if rank == 1:
        while not Path("told").exists():
            time.sleep(0.01)
        return "waited"
    try:
        dist.all_reduce(taeda.ones(3))
    except RuntimeError as error:
        Path("told").touch()
        return str(error)
    return "nothing was raised"


def training(rank: int, world: int, options: dict) -> list:
    """Weights after training on this rank's part of each batch."""
    if world > 1:
        join(".", rank, world)
    taeda.manual_seed(rank)
    model = taeda.nn.Sequential(
        taeda.nn.Linear(4, 8), taeda.nn.Tanh(), taeda.nn.Linear(8, 2)
    ).double()
    with taeda.no_grad():
        for i, p in enumerate(model.parameters()):
            noise = np.random.RandomState(i).standard_normal(tuple(p.shape))
            p.copy_(taeda.tensor(noise if rank == 0 else 0 * noise))
    inner = model
    if world > 1:
        model = DistributedDataParallel(model, **options)
    optimizer = taeda.optim.SGD(inner.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        x = taeda.tensor(np.random.RandomState(50 + step).standard_normal((12, 4)))
        y = taeda.tensor(np.random.RandomState(90 + step).standard_normal((12, 2)))
        part = slice(rank * 12 // world, (rank + 1) * 12 // world)
        loss = taeda.nn.functional.mse_loss(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.detach().numpy().tolist() for p in inner.parameters()]


class _Halves(taeda.nn.Module):
    """Two layers, of which a call uses one or both; the first may be computed again."""

    def __init__(self, again: bool = False) -> None:
        super().__init__()
        self.first, self.second = taeda.nn.Linear(3, 3), taeda.nn.Linear(3, 3)
        self.again = again

    def forward(self, x, first: bool = True, second: bool = True):
        from taeda.utils.checkpoint import checkpoint

        if first and self.again:
            x = checkpoint(self.first, x, use_reentrant=True)
            x = checkpoint(self.first, x, use_reentrant=True)
        elif first:
            x = self.first(x)
        return self.second(x) if second else x


def _grads(model) -> list:
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


def _averaged(model, calls: list) -> list:
    """The mean over `calls` of gradients in one process."""
    for p in model.parameters():
        p.grad = None
    for x, options in calls:
        (model(x, **options).square().sum() / len(calls)).backward()
    return _grads(model)


def _told(f, *args, **kwargs) -> str:
    try:
        f(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def unused_parameters(rank: int, world: int, views: bool) -> list:
    """Pairs of gradients that should agree; rank 1 uses the second layer alone."""
    join(".", rank, world)
    taeda.manual_seed(0)
    inner = _Halves()
    inputs = [taeda.randn(2, 3) for _ in range(world)]
    model = DistributedDataParallel(
        inner, find_unused_parameters=True, gradient_as_bucket_view=views
    )
    some = [{"first": r == 0} for r in range(world)]
    none = [{"first": False} for _ in range(world)]
    pairs = []
    for options in (some, none, some):
        model.zero_grad()
        model(inputs[rank], **options[rank]).square().sum().backward()
        pairs.append(_grads(inner))
        calls = list(zip(inputs, options, strict=True))
        pairs.append(_averaged(copy.deepcopy(inner), calls))
    return pairs


def computed_again(rank: int, world: int) -> list:
    """Pairs as above, with reentrant checkpoints in a static graph."""
    join(".", rank, world)
    taeda.manual_seed(0)
    inner = _Halves(again=True)
    inputs = [taeda.randn(2, 3, requires_grad=True) for _ in range(world)]
    model = DistributedDataParallel(inner, static_graph=True, bucket_cap_mb=1e-5)
    pairs = []
    for _ in range(3):
        model.zero_grad()
        model(inputs[rank]).square().sum().backward()
        pairs.append(_grads(inner))
        calls = [(x, {}) for x in inputs]
        pairs.append(_averaged(copy.deepcopy(inner), calls))
    return pairs


def broken_passes(rank: int, world: int) -> dict:
    """What is raised by passes that go wrong, and after them."""
    join(".", rank, world)
    x, texts = taeda.ones(2, 3), {}

    def passed(model, **options) -> str:
        return _told(lambda: model(x, **options).sum().backward())

    model = DistributedDataParallel(_Halves())
    texts["left out"] = passed(model, first=False)
    texts["after it"] = passed(model)
    dist.set_debug_level(dist.DebugLevel.INFO)
    model = DistributedDataParallel(_Halves())
    passed(model, first=False)
    texts["by name"] = passed(model)
    dist.set_debug_level(dist.DebugLevel.OFF)
    model = DistributedDataParallel(_Halves(), static_graph=True)
    passed(model, first=False)
    texts["changed"] = passed(model)
    model = DistributedDataParallel(_Halves(again=True))
    texts["again"] = _told(lambda: model(x.requires_grad_()).sum().backward())
    model = DistributedDataParallel(_Halves())

    def refuse(state, bucket):
        raise KeyError(f"bucket {bucket.index()} of {state}")

    model.register_comm_hook("hooks", refuse)
    texts["hook"] = passed(model)
    texts["after the hook"] = passed(model)
    gone = weakref.ref(model.reducer)
    model = None
    gc.collect()
    texts["kept"] = str(gone() is not None)
    return texts


def other_gradients(rank: int, world: int) -> dict:
    """Sparse gradients, and one that does not come though its leaf is reached."""
    join(".", rank, world)
    table = taeda.nn.Embedding(5, 2, sparse=True)
    model = DistributedDataParallel(table)
    model(taeda.tensor([rank, 3])).sum().backward()
    sparse = table.weight.grad

    class Nothing(taeda.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    class Layer(taeda.nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.idle = taeda.nn.Parameter(taeda.ones(2))

        def forward(self, x):
            return Nothing.apply(super().forward(x), self.idle)

    layer = Layer()
    parallel = DistributedDataParallel(layer)
    for _ in range(2):
        parallel(taeda.ones(1, 2) * (rank + 1)).sum().backward()
    return {
        "is sparse": sparse.is_sparse,
        "table": sparse.to_dense().tolist(),
        "weight": layer.weight.grad.tolist(),
    }


def low_precision(rank: int, world: int) -> dict:
    """Dtypes within and outside of a model that computes in bfloat16, and its loss."""
    from taeda.nn.parallel.distributed import _MixedPrecision

    join(".", rank, world)
    model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.Linear(8, 2))
    model.register_buffer("scale", taeda.ones(2))
    seen = []
    model[1].register_forward_hook(
        lambda m, i, o: seen.extend(t.dtype for t in (i[0], m.weight, o))
    )
    choice = _MixedPrecision(taeda.bfloat16, taeda.float32, taeda.float16)
    parallel = DistributedDataParallel(model, mixed_precision=choice)
    optimizer = taeda.optim.SGD(parallel.parameters(), lr=0.1)
    losses = []
    for _ in range(10):
        loss = parallel(taeda.ones(3, 4) * (rank + 1)).float().square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    flat = taeda.cat([p.detach().reshape(-1) for p in model.parameters()])
    return {
        "inside": [str(d).rpartition(".")[2] for d in seen[:3]],
        "parameters": {str(p.dtype).rpartition(".")[2] for p in model.parameters()},
        "gradients": {str(p.grad.dtype).rpartition(".")[2] for p in model.parameters()},
        "buffer": str(model.scale.dtype).rpartition(".")[2],
        "names": list(model.state_dict()),
        "fell": losses[-1] < losses[0],
        "weights": flat.tolist(),
    }


def meshes(rank: int, world: int) -> dict:
    """A grid, its parts, and functional collectives with gradients over them."""
    from taeda.distributed import _functional_collectives as functional
    from taeda.distributed.device_mesh import init_device_mesh

    join(".", rank, world)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    row = functional.all_reduce(taeda.tensor([10.0**rank]), "sum", mesh["tp"])
    x = taeda.tensor([1.0 + rank, 2.0], requires_grad=True)
    whole = functional.all_gather_tensor_autograd(x, 0, mesh["dp"])
    (whole * taeda.arange(4.0)).sum().backward()
    return {
        "row": row.item(),
        "coordinate": mesh.get_coordinate(),
        "whole": whole.tolist(),
        "grad": x.grad.tolist(),
    }


def records(rank: int, world: int) -> list:
    """The flight record of a few operations."""
    from taeda import _distributed

    join(".", rank, world)
    dist.all_reduce(taeda.ones(3))
    dist.barrier()
    return [
        (e["collective"], e["state"], e["bytes"], os.path.basename(e["caller"]))
        for e in _distributed.flight_record()
    ]


def synchronised(rank: int, world: int):
    """Objects of all ranks, and failures of one that all ranks have."""
    from taeda.distributed import collective_utils

    join(".", rank, world)
    group = dist.new_group([0, 1])

    def fail(at: int):
        def made():
            if rank == at:
                raise KeyError("no id")
            return rank

        return made

    def told(call) -> str:
        try:
            return repr(call())
        except (RuntimeError, TypeError) as error:
            return f"{type(error).__name__} {type(error.__cause__).__name__}: {error}"

    gather, share = collective_utils.all_gather, collective_utils.broadcast
    found = [
        told(lambda: gather(lambda: rank * 10, "ids", pg=group)),
        told(lambda: share(lambda: rank + 5, rank=1, pg=group)),
        told(lambda: gather(fail(1), pg=group)),
        told(lambda: share(fail(0), stage_name="ids", pg=group)),
        told(lambda: gather(1, f"stage {rank}", pg=group)),
    ]
    kinds = [None] * world
    check = collective_utils.all_gather_object_enforce_type
    found.append(told(lambda: check(group, kinds, 1 if rank else "one")))
    dist.barrier()
    return found
