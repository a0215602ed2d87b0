"""Collectives against PyTorch's Gloo, in the same processes, by turns.

    PYTHONPATH=python .venv/bin/python benchmarks/distributed.py --world 2

Each rank joins two groups, ours and PyTorch's. Figures are of rank 0: medians over
rounds of the mean time of a call, and their ratio.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import tempfile
import time

SIZES = (4, 64 << 10, 4 << 20, 64 << 20)
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")


def calls(lib, world: int, size: int) -> dict:
    """Functions that run one collective of `size` bytes in each rank."""
    dist, n = lib.distributed, max(1, size // 4)
    x = lib.ones(n)
    parts = [lib.ones(max(1, n // world)) for _ in range(world)]
    part, outs = parts[0].clone(), [lib.empty_like(parts[0]) for _ in range(world)]
    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "all_gather": lambda: dist.all_gather(outs, part),
        "reduce_scatter": lambda: dist.reduce_scatter(part, parts),
        "broadcast": lambda: dist.broadcast(x, 0),
    }


def timed(call, barrier, count: int) -> float:
    """Seconds for one call, on the mean of `count`."""
    barrier()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    barrier()
    return (time.perf_counter() - begin) / count


def rank_main(rank: int, world: int, folder: str, rounds: int, results) -> None:
    """Both libraries' groups, and the calls by turns."""
    import taeda
    import torch
    import torch.distributed

    libs = {"taeda": taeda, "torch": torch}
    for name, lib in libs.items():
        lib.set_num_threads(1)
        store = lib.distributed.FileStore(os.path.join(folder, name), world)
        lib.distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=world
        )
    for size in SIZES:
        count = 200 if size < 1 << 16 else 40 if size < 1 << 22 else 3
        made = {name: calls(lib, world, size) for name, lib in libs.items()}
        for name in NAMES:
            times: dict[str, list[float]] = {lib: [] for lib in libs}
            for turn in range(rounds + 1):
                for lib in libs:
                    barrier = libs[lib].distributed.barrier
                    taken = timed(made[lib][name], barrier, count)
                    if turn:  # the first is warm-up
                        times[lib].append(taken)
            if rank == 0:
                results.put(
                    (name, size, {k: statistics.median(v) for k, v in times.items()})
                )
    results.put(None)
    for lib in libs.values():
        lib.distributed.destroy_process_group()


def main() -> None:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    results, ratios = context.Queue(), []
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(
                target=rank_main,
                args=(r, options.world, folder, options.rounds, results),
            )
            for r in range(options.world)
        ]
        for process in ranks:
            process.start()
        left = options.world
        while left:
            row = results.get()
            if row is None:
                left -= 1
                continue
            name, size, found = row
            ratios.append(found["taeda"] / found["torch"])
            print(
                f"{name:15} {size:>9} B  ours {found['taeda'] * 1e6:10.1f} us  "
                f"gloo {found['torch'] * 1e6:10.1f} us  ratio {ratios[-1]:.2f}",
                flush=True,
            )
        for process in ranks:
            process.join()
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    print(f"{options.world} ranks: geometric mean {mean:.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main()
