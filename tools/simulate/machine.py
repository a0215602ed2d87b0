"""What collectives cost between ranks on this machine, measured.

    python -m tools.simulate.machine RANK WORLD FOLDER

is one rank; `calibrate` starts them and fits a `Host`.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .network import Curve, Host

__all__ = ["calibrate", "start"]

ROOT = Path(__file__).resolve().parents[2]
SIZES = tuple(1 << power for power in (16, 18, 20, 22))
ROUNDS, TENSORS = 15, 12
SLICE = 0.1


def start(module: str, arguments: list, **environment: str) -> subprocess.Popen:
    """A process that runs a module of this folder."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")]),
        "OMP_NUM_THREADS": "1",
        **environment,
    }
    command = [sys.executable, "-m", f"tools.simulate.{module}", *map(str, arguments)]
    return subprocess.Popen(command, env=env, cwd=ROOT)


def before_others() -> bool:
    """Has this process's threads run before those of other programs, if it may.

    Threads of this kind give a core away when they wait, or after SLICE seconds.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return False
    return True


def together(processes: list[subprocess.Popen]) -> None:
    """Waits for all.

    Raises:
        RuntimeError: one failed.
    """
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError(f"simulate: processes ended with {codes}")


def _timed(call, barrier) -> float:
    """Seconds of a call, the median of rounds that begin together."""
    times = []
    for number in range(ROUNDS + 3):
        barrier()
        begin = time.perf_counter()
        call(number % TENSORS)
        if number >= 3:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _messages(rank: int) -> dict[str, float]:
    """Of messages there and back between two ranks.

    Returns:
        wake: seconds until who sleeps has one. post: those of a core for sending or
        taking a message without waiting.
    """
    import taeda
    import taeda.distributed as dist

    late = []
    for pause in (0.0, 1e-3):
        for _ in range(4 * ROUNDS):
            stamp = taeda.zeros(1, dtype=taeda.float64)
            if rank == 0:
                if pause:
                    time.sleep(pause)
                stamp.fill_(time.perf_counter())
                dist.send(stamp, 1)
                dist.recv(stamp, 1)
            else:
                dist.recv(stamp, 0)
                stamp.fill_(time.perf_counter() - stamp.item())
                dist.send(stamp, 0)
            late.append(stamp.item())
    found = {"wake": statistics.median(late[4 * ROUNDS :])}
    found["post"] = _posting(rank)
    return found


def _posting(rank: int) -> float:
    """Seconds of a core for a tiny message that nobody waits for, at one end."""
    import taeda
    import taeda.distributed as dist

    tensors, times = [taeda.ones(1) for _ in range(TENSORS)], []
    for _ in range(ROUNDS):
        if rank == 0:
            dist.recv(tensors[0], 1)
        else:
            dist.send(tensors[0], 0)
            time.sleep(2e-3)  # until all are there
        begin = time.process_time()
        if rank == 0:
            works = [dist.isend(tensor, 1) for tensor in tensors]
        else:
            works = [dist.irecv(tensor, 0) for tensor in tensors]
        for work in works:
            work.wait()
        times.append((time.process_time() - begin) / TENSORS)
    return statistics.median(times)


def _blocking(rank: int) -> float:
    """Seconds of a core that waiting asleep for a collective takes."""
    import taeda
    import taeda.distributed as dist

    tiny, worked = taeda.ones(1), {}
    for pause in (0.0, 1e-3):
        times = []
        for _ in range(4 * ROUNDS):
            dist.barrier()
            if pause and rank == 0:
                time.sleep(pause)
            begin = time.process_time()
            dist.all_reduce(tiny)
            times.append(time.process_time() - begin)
        worked[pause] = statistics.median(times)
    return max(0.0, worked[1e-3] - worked[0.0])


def _moving(size: int, world: int) -> dict:
    """Functions that gather and reduce a tensor of so many bytes, or a little less."""
    import taeda
    import taeda.distributed as dist

    each = size // 4 // world
    # Tensors by turns: those of a training step are not in the nearest cache either.
    wholes = [taeda.ones(each * world) for _ in range(TENSORS)]
    parts = [taeda.ones(each) for _ in range(TENSORS)]

    def gather(i: int) -> None:
        # Into new memory, as training gathers parameters.
        dist.all_gather_into_tensor(taeda.empty(each * world), parts[i])

    def reduce(i: int) -> None:
        dist.reduce_scatter_tensor(parts[i], wholes[i])

    return {"copy": gather, "reduce": reduce}


def _rank(rank: int, world: int, folder: Path) -> None:
    """Measures what `calibrate` reads."""
    import taeda
    import taeda.distributed as dist

    before_others()
    taeda.set_num_threads(1)
    store = dist.FileStore(str(folder / "meeting"), world)
    dist.init_process_group("gloo", rank=rank, world_size=world, store=store)
    tiny = taeda.ones(1)
    found = [f"tiny {_timed(lambda i: dist.all_reduce(tiny), dist.barrier)}"]
    for size in SIZES:
        for name, call in _moving(size, world).items():
            found.append(f"{name}.{size} {_timed(call, dist.barrier)}")
    block = _blocking(rank)
    if rank > 0:
        found.append(f"block {block}")
    if rank < 2:
        found += [f"{k} {seconds}" for k, seconds in _messages(rank).items()]
    (folder / f"times.{rank}").write_text("\n".join(found))
    dist.barrier()
    dist.destroy_process_group()


def _times(world: int) -> dict[str, float]:
    """By name, seconds at the median rank."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        together([start("machine", [r, world, folder]) for r in range(world)])
        rows: dict[str, list[float]] = {}
        for rank in range(world):
            for line in (folder / f"times.{rank}").read_text().splitlines():
                key, seconds = line.split()
                rows.setdefault(key, []).append(float(seconds))
    return {key: statistics.median(values) for key, values in rows.items()}


def _curve(times: dict[str, float], name: str, turns: float = 1.0) -> Curve:
    """Of what each size took beyond the smallest call; more bytes never take less.

    Args:
        turns: how many ranks one core served.
    """
    took = [max(0.0, times[f"{name}.{size}"] - times["tiny"]) / turns for size in SIZES]
    return Curve(tuple(zip(SIZES, itertools.accumulate(took, max), strict=True)))


def calibrate(cores: int, ranks: int) -> Host:
    """This machine's figures, of as many ranks as cores and of those that will run."""
    few = _times(cores)
    shared = {}
    if ranks > cores:
        many = _times(ranks)
        shared = {
            "switch": max(0.0, many["tiny"] - few["tiny"]) / (ranks - cores),
            "copy_in_turns": _curve(many, "copy", ranks / cores),
            "reduce_in_turns": _curve(many, "reduce", ranks / cores),
        }
    return Host(
        cores=cores,
        latency=few["tiny"],
        wake=max(0.0, few["wake"] - few["tiny"]),
        block=few["block"],
        post=few["post"],
        copy=_curve(few, "copy"),
        reduce=_curve(few, "reduce"),
        **shared,
    )


if __name__ == "__main__":
    _rank(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
