"""What a call on distributed tensors costs besides the operator, against PyTorch's.

    PYTHONPATH=python OMP_NUM_THREADS=1 .venv/bin/python benchmarks/dtensor.py

One process stands for one rank of two, over backends that send nothing. Overhead is the
time of a call less that of the same call on this rank's part, by turns; the least of
all rounds in microseconds, and their ratio. Rounds are short, so that on a busy machine
some are not interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import math
import statistics
import time
import warnings

STORES = {
    "taeda": "taeda.distributed._fake",
    "torch": "torch.testing._internal.distributed.fake_pg",
}


def cases(lib) -> dict:
    """Name -> (call on distributed tensors, the same on parts)."""
    space = importlib.import_module(f"{lib.__name__}.distributed.tensor")
    mesh = lib.distributed.device_mesh.init_device_mesh("cpu", (2,))
    relu, norm = lib.relu, lib.nn.functional.layer_norm
    x, w = lib.randn(4, 6), lib.randn(6, 6)
    d = space.distribute_tensor(x, mesh, [space.Shard(0)])
    v = space.distribute_tensor(w, mesh, [space.Replicate()]).requires_grad_()
    part, own = d.to_local().detach(), w.clone().requires_grad_()

    def both(call) -> tuple:
        return (lambda: call(d, v)), (lambda: call(part, own))

    return {
        "add": both(lambda a, b: a + a),
        "mul_number": both(lambda a, b: a * 2),
        "relu": both(lambda a, b: relu(a)),
        "matmul": both(lambda a, b: a @ b),
        "sum": both(lambda a, b: a.sum(1)),
        "transpose": both(lambda a, b: a.t()),
        "softmax": both(lambda a, b: a.softmax(1)),
        "add_": both(lambda a, b: a.add_(0)),
        "unsqueeze": both(lambda a, b: a.unsqueeze(1)),
        "split": both(lambda a, b: a.split(3, 1)),
        "layer_norm": both(lambda a, b: norm(a, (6,))),
        "backward": both(lambda a, b: (a @ b).sum().backward()),
    }


def seconds(call, count: int) -> float:
    """For one call, on the mean of `count`."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def overheads(pairs: list[tuple], rounds: int, count: int) -> list[float]:
    """For each pair of calls, microseconds of the first less those of the second."""
    times: list[list] = [[] for pair in pairs for _ in pair]
    calls = [call for pair in pairs for call in pair]
    for call in calls:
        seconds(call, count)
    for _ in range(rounds):
        for call, found in zip(calls, times, strict=True):
            found.append(seconds(call, count))
    least = [min(found) * 1e6 for found in times]
    return [a - b for a, b in zip(least[::2], least[1::2], strict=True)]


def main() -> None:
    """Prints a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--count", type=int, default=25)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    tables = {}
    for name, where in STORES.items():
        lib = importlib.import_module(name)
        importlib.import_module(f"{name}.distributed.device_mesh")
        store = importlib.import_module(where).FakeStore()
        lib.distributed.init_process_group("fake", store=store, rank=0, world_size=2)
        lib.set_num_threads(1)
        tables[name] = cases(lib)
    ratios = []
    for case in tables["taeda"]:
        pairs = [tables[name][case] for name in ("taeda", "torch")]
        ours, theirs = overheads(pairs, options.rounds, options.count)
        ratios.append(ours / theirs)
        figures = f"{ours:8.2f} {theirs:8.2f}  ratio {ratios[-1]:.2f}"
        print(f"{case:12} {figures}", flush=True)
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"geometric mean {mean:.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
