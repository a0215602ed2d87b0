"""Training steps over ranks, and the launcher's start, against PyTorch's, by turns.

    PYTHONPATH=python .venv/bin/python benchmarks/distributed_steps.py --world 2

Steps are of `DistributedDataParallel` with Gloo: a residual network of convolutions and
a GPT, one thread each. The start is from the command to the end of the first
collective. Figures are medians of rounds; both libraries take turns in each.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIBRARIES = ("taeda", "torch")
CASES = ("resnet", "gpt")
STEPS = 4
FIRST = """
import {lib} as lib
dist = lib.distributed
dist.init_process_group("gloo")
dist.all_reduce(lib.ones(1))
if dist.get_rank() == 0:
    print(repr(__import__("time").time()), flush=True)
dist.destroy_process_group()
"""


def resnet(lib):
    """A module of six residual blocks, and a batch of 8 small pictures."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            stride = 1 if before == after else 2
            self.first = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
            self.second = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(after) for _ in range(2)])
            self.skip = (
                nn.Identity()
                if before == after
                else nn.Conv2d(before, after, 1, stride, bias=False)
            )

        def forward(self, x):
            y = self.norms[0](self.first(x)).relu()
            return (self.norms[1](self.second(y)) + self.skip(x)).relu()

    widths = (32, 32, 32, 64, 64, 128, 128)
    blocks = [Block(a, b) for a, b in zip(widths, widths[1:], strict=False)]
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return model, lib.randn(8, 3, 32, 32), lib.randint(0, 10, (8,))


def gpt(lib):
    """A module of four blocks of width 192, and 4 sequences of 64 tokens."""
    nn, width = lib.nn, 192

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(512, width)
            layer = nn.TransformerEncoderLayer(
                width, 6, 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            self.blocks = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(width, 512, bias=False)
            mask = nn.Transformer.generate_square_subsequent_mask(64)
            self.register_buffer("mask", mask)

        def forward(self, x):
            hidden = self.blocks(self.tokens(x), mask=self.mask)
            return self.head(hidden).flatten(0, 1)

    tokens = lib.randint(0, 512, (4, 64))
    return Model(), tokens, tokens.flatten()


def step_of(lib, case: str):
    """A function that trains one step of a case."""
    model, inputs, wanted = {"resnet": resnet, "gpt": gpt}[case](lib)
    parallel = lib.nn.parallel.DistributedDataParallel(model)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(parallel(inputs), wanted).backward()
        optimizer.step()

    return step


def rank_main(rank: int, world: int, folder: str, rounds: int, results) -> None:
    """Both libraries' groups, and the steps by turns."""
    import taeda
    import torch
    import torch.distributed

    libs = {"taeda": taeda, "torch": torch}
    for name, lib in libs.items():
        lib.set_num_threads(1)
        lib.manual_seed(0)
        store = lib.distributed.FileStore(os.path.join(folder, name), world)
        lib.distributed.init_process_group(
            "gloo", store=store, rank=rank, world_size=world
        )
    for case in CASES:
        steps = {name: step_of(lib, case) for name, lib in libs.items()}
        times: dict[str, list[float]] = {name: [] for name in libs}
        for turn in range(rounds + 2):
            for name, lib in libs.items():
                lib.distributed.barrier()
                begin = time.perf_counter()
                for _ in range(STEPS):
                    steps[name]()
                lib.distributed.barrier()
                if turn > 1:  # the first two are warm-up
                    times[name].append((time.perf_counter() - begin) / STEPS)
        if rank == 0:
            results.put((case, {k: statistics.median(v) for k, v in times.items()}))
    results.put(None)
    for lib in libs.values():
        lib.distributed.destroy_process_group()


def steps_of(world: int, rounds: int):
    """(case, seconds by library)."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=rank_main, args=(r, world, folder, rounds, results))
            for r in range(world)
        ]
        for process in ranks:
            process.start()
        left = world
        while left:
            row = results.get()
            if row is None:
                left -= 1
            else:
                yield row
        for process in ranks:
            process.join()


def started(lib: str, world: int, folder: Path) -> float:
    """Seconds from the launcher's start to the end of a first collective."""
    program = folder / f"first_{lib}.py"
    program.write_text(FIRST.format(lib=lib))
    module = f"{lib}.distributed.run"
    options = ["--standalone", f"--nproc-per-node={world}", str(program)]
    begin = time.time()
    done = subprocess.run(
        [sys.executable, "-m", module, *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return float(done.stdout.split()[-1]) - begin


def starts_of(world: int, rounds: int) -> dict[str, float]:
    """Medians by library; the first round is warm-up."""
    with tempfile.TemporaryDirectory() as name:
        times: dict[str, list[float]] = {lib: [] for lib in LIBRARIES}
        for turn in range(rounds + 1):
            for lib in LIBRARIES:
                seconds = started(lib, world, Path(name))
                if turn:
                    times[lib].append(seconds)
    return {lib: statistics.median(found) for lib, found in times.items()}


def main() -> None:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    rows = list(steps_of(options.world, options.rounds))
    rows.append(("start", starts_of(options.world, max(3, options.rounds // 3))))
    ratios = []
    for case, found in rows:
        ratios.append(found["taeda"] / found["torch"])
        print(
            f"{case:8} ours {found['taeda'] * 1e3:9.1f} ms  PyTorch "
            f"{found['torch'] * 1e3:9.1f} ms  ratio {ratios[-1]:.2f}"
        )
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    load = os.getloadavg()[0]
    print(f"{options.world} ranks: geometric mean {mean:.2f}, load {load:.0f}")


if __name__ == "__main__":
    main()
