#!/usr/bin/env python3
"""Backward passes that are captured whole (compiled autograd) beside the engine's.

    python benchmarks/compile_backward.py [--threads 1] [--rounds 300]

Of each model, forward run eagerly and compiled, the time of `backward()` alone: the
median of compiled passes over that of the engine's, in turns. Kernels are ready before.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time

import taeda
from taeda import nn
from taeda._dynamo import compiled_autograd


def models():
    """(name, module, input) from a handful of calls to a small transformer."""
    yield "linear 4 x 4", nn.Linear(4, 4), taeda.randn(2, 4)
    yield (
        "MLP 64 to 256",
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)),
        taeda.randn(64, 64),
    )
    layers = [
        nn.TransformerEncoderLayer(
            128, 4, 512, dropout=0.0, batch_first=True, norm_first=True
        )
        for _ in range(4)
    ]
    yield "transformer of 4 layers", nn.Sequential(*layers), taeda.randn(4, 64, 128)


def contexts() -> dict:
    """The engine's passes and compiled ones."""
    return {
        "engine": contextlib.nullcontext,
        "compiled": lambda: compiled_autograd._enable(None, dynamic=False),
    }


def seconds(module, forward, x, around) -> float:
    """Of one backward pass."""
    module.zero_grad()
    loss = forward(x).square().mean()
    with around():
        start = time.perf_counter()
        loss.backward()
        return time.perf_counter() - start


def ratio(module, forward, x, rounds: int) -> tuple[float, float]:
    """Compiled over eager, and the eager microseconds."""
    found: dict[str, list[float]] = {name: [] for name in contexts()}
    for i in range(rounds + 5):
        for name, around in contexts().items():
            found[name].append(seconds(module, forward, x, around))
        if i == 4:
            time.sleep(3)  # kernels are made beside the program
    middle = {name: statistics.median(times[5:]) for name, times in found.items()}
    return middle["compiled"] / middle["engine"], middle["engine"] * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=300)
    given = parser.parse_args()
    taeda.set_num_threads(given.threads)
    taeda.manual_seed(0)
    for name, module, x in models():
        for how, forward in (("eager", module), ("compiled", taeda.compile(module))):
            of, eager = ratio(module, forward, x, given.rounds)
            print(f"{name}, forward {how}: {of:.2f} of {eager:.0f} us")


if __name__ == "__main__":
    main()
