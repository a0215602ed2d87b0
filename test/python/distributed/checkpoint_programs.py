"""What ranks do in the tests of checkpoints."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import taeda
import taeda.distributed as dist
import taeda.distributed.checkpoint as dcp
from ranks import join
from taeda.distributed.checkpoint import state_dict as helpers
from taeda.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from taeda.distributed.device_mesh import init_device_mesh
from taeda.distributed.tensor import Replicate, Shard, distribute_tensor

warnings.simplefilter("ignore")
SHAPE = 7, 5


def whole(seed: int) -> np.ndarray:
    """The same numbers at every rank and in each library."""
    return np.random.RandomState(seed).standard_normal(SHAPE)


def state(world: int, fill: float | None = None) -> dict:
    """Tensors in several layouts, and objects; zeros and such with `fill`."""
    made: dict = {}
    mesh = init_device_mesh("cpu", (world,)) if world > 1 else None
    layouts = {"rows": Shard(0), "columns": Shard(1), "all": Replicate()}
    for seed, (name, placement) in enumerate(layouts.items()):
        data = whole(seed) if fill is None else np.full(SHAPE, fill)
        tensor = taeda.from_numpy(data)
        made[name] = distribute_tensor(tensor, mesh, [placement]) if mesh else tensor
    values = [1.0, 2.0] if fill is None else [fill, fill]
    made["nested"] = {"list": [taeda.tensor(values), 3 if fill is None else 0]}
    made["text"] = "kept" if fill is None else ""
    return made


def plain(found: dict) -> dict:
    """A state as whole arrays and objects."""
    whole_state = {
        name: value.full_tensor() if hasattr(value, "full_tensor") else value
        for name, value in found.items()
    }
    return dcp.utils.map_tensors(whole_state, lambda t: t.detach().numpy().tolist())


def save(rank: int, world: int, path: str) -> list[str]:
    join(".", rank, world)
    dcp.save(state(world), checkpoint_id=path)
    return sorted(os.listdir(path))


def load(rank: int, world: int, path: str) -> dict:
    if world > 1:
        join(".", rank, world)
    found = state(world, 0.0)
    dcp.load(found, checkpoint_id=path)
    return plain(found)


def strided(rank: int, world: int, path: str) -> tuple[dict, bool]:
    """A layout of two dimensions of ranks, whose parts are several boxes."""
    from taeda.distributed.tensor import DTensor
    from taeda.distributed.tensor.placement_types import _StridedShard

    join(".", rank, world)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    layout = [_StridedShard(0, split_factor=2), Shard(0)]
    full = taeda.arange(24.0).reshape(8, 3)
    mine = DTensor.from_local(
        taeda.zeros(2, 3), mesh, layout, shape=(8, 3), stride=(3, 1), run_check=False
    )
    for box, part in dcp.planner_helpers.boxes_of(mine):
        start, length = box.offsets[0], box.sizes[0]
        part.copy_(full[start : start + length])
    dcp.save({"t": mine}, checkpoint_id=path)
    other = distribute_tensor(taeda.zeros(8, 3), mesh, [Replicate(), Shard(1)])
    dcp.load({"t": other}, checkpoint_id=path)
    return taeda.equal(other.full_tensor(), full)


def failures(rank: int, world: int, path: str) -> list:
    """Each failure is raised at every rank, and names the rank where it was."""
    join(".", rank, world)
    dcp.save(state(world), checkpoint_id=path)
    found = []

    def attempt(function, *args, **kwargs) -> None:
        try:
            function(*args, **kwargs)
            found.append(None)
        except dcp.CheckpointException as error:
            found.append((sorted(error.failures), str(error).strip().splitlines()[-1]))

    class Broken:
        def __reduce__(self):
            if rank == 1:
                raise ValueError("cannot be saved")
            return str, ("fine",)

    extra = {"rows" if rank else "absent": taeda.zeros(SHAPE, dtype=taeda.float64)}
    attempt(dcp.load, {"absent": taeda.zeros(1)}, checkpoint_id=path)
    attempt(dcp.load, extra, checkpoint_id=path)
    attempt(dcp.load, {"rows": taeda.zeros(2, 2)}, checkpoint_id=path)
    attempt(dcp.save, {f"only{rank}": Broken()}, checkpoint_id=path)
    again = state(world, 0.0)
    dcp.load(again, checkpoint_id=path)
    found.append(plain(again) == plain(state(world)))
    return found


def asynchronous(rank: int, world: int, path: str, kind: str) -> tuple[bool, bool]:
    """Training goes on, with collectives of its own, while a checkpoint is saved."""
    join(".", rank, world)
    kept = {"t": taeda.full((100_000,), float(rank)), f"mine{rank}": taeda.ones(3)}
    kinds = AsyncCheckpointerType
    how = kinds.PROCESS if kind == "process" else kinds.THREAD
    future = dcp.async_save(kept, checkpoint_id=path, async_checkpointer_type=how)
    sums = []
    for _ in range(50):
        kept["t"].add_(1)
        x = taeda.ones(10)
        dist.all_reduce(x)
        sums.append(x[0].item())
    metadata = future.result()
    found = {f"mine{rank}": taeda.zeros(3), "t": taeda.zeros(100_000)}
    dcp.load(found, checkpoint_id=path)
    same = bool((found["t"] == found["t"][0]).all()) and found["t"][0].item() in (0, 1)
    return same and set(sums) == {float(world)}, len(metadata.storage_data) == 1 + world


def killed(rank: int, world: int, path: str, writes: int) -> None:
    """Rank 0 dies while it writes a second checkpoint, after some system calls."""
    join(".", rank, world)
    if rank == 0:
        _die_after(writes)
    dcp.save(state(world, 9.0), checkpoint_id=path)


def _die_after(count: int) -> None:
    from taeda.distributed.checkpoint import _files

    left = [count]

    def counted(function):
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    system = _files.FileSystem
    for name in ("create_stream", "rename", "rm_file", "sync"):
        setattr(system, name, counted(getattr(system, name)))


def model(seed: int = 0):
    taeda.manual_seed(seed)
    return taeda.nn.Sequential(
        taeda.nn.Linear(4, 6), taeda.nn.ReLU(), taeda.nn.Linear(6, 2)
    )


def trained(rank: int, world: int, path: str) -> dict:
    """A wrapped model is trained, saved under plain names, and loaded into another."""
    join(".", rank, world)
    first = taeda.nn.parallel.DistributedDataParallel(model())
    optimizer = taeda.optim.AdamW(first.parameters(), lr=0.1)
    x = taeda.ones(3, 4)
    first(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept = dict(
        zip(("model", "optimizer"), helpers.get_state_dict(first, optimizer), strict=1)
    )
    names = sorted(kept["model"])
    dcp.save(kept, checkpoint_id=path)
    other = model(1)
    again = taeda.optim.AdamW(other.parameters(), lr=0.5)
    empty = dict(
        zip(("model", "optimizer"), helpers.get_state_dict(other, again), strict=1)
    )
    dcp.load(empty, checkpoint_id=path)
    result = helpers.set_state_dict(
        other,
        again,
        model_state_dict=empty["model"],
        optim_state_dict=empty["optimizer"],
    )
    losses = []
    for net, opt in ((first, optimizer), (other, again)):
        net(x).sum().backward()
        opt.step()
        losses.append(net(x).sum().item())
    return {"names": names, "result": list(result.missing_keys), "losses": losses}


def spread(rank: int, world: int) -> dict:
    """Whole states to spread ones and back, of a tensor-parallel model."""
    from taeda.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    join(".", rank, world)
    mesh = init_device_mesh("cpu", (world,))
    net = parallelize_module(model(), mesh, {"0": ColwiseParallel()})
    options = helpers.StateDictOptions
    spread_state = helpers.get_model_state_dict(net)
    whole_state = helpers.get_model_state_dict(
        net, options=options(full_state_dict=True)
    )
    alone = model().state_dict()
    as_alone = all(taeda.equal(whole_state[k], v) for k, v in alone.items())
    cpu = options(full_state_dict=True, cpu_offload=True)
    at_first = helpers.get_model_state_dict(net, options=cpu)
    doubled = {k: v * 2 for k, v in alone.items()} if rank == 0 else {}
    from_first = options(full_state_dict=True, broadcast_from_rank0=True)
    helpers.set_model_state_dict(net, doubled, options=from_first)
    after = helpers.get_model_state_dict(net, options=options(full_state_dict=True))
    optimizer = taeda.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    flat = helpers.get_optimizer_state_dict(
        net, optimizer, options=options(flatten_optimizer_state_dict=True)
    )
    flat = {k: v * 0 + 5 if "buffer" in k else v for k, v in flat.items()}
    helpers.set_optimizer_state_dict(net, optimizer, flat)
    buffers = [s["momentum_buffer"] for s in optimizer.state.values()]
    return {
        "kinds": sorted(type(v).__name__ for v in spread_state.values()),
        "whole": as_alone,
        "at_first": len(at_first),
        "doubled": all(taeda.equal(after[k], 2 * v) for k, v in alone.items()),
        "buffers": [
            float((b.full_tensor() if hasattr(b, "full_tensor") else b).mean())
            for b in buffers
        ],
    }
