#!/usr/bin/env python3
"""What recording and guarding cost: the time of a step with them over the time without.

    python benchmarks/profiler.py [--rounds 15]

`gpt` is a training step of `docs/examples/char_gpt.py` (demo size), recorded with
various options; making tables of it is not counted. `mlp WIDTH` is a training step of
three layers on 64 rows under `nan_guard`. One thread; A B A B; medians of this
process's processor time, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import sys
import time

import taeda as T

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "docs" / "examples"))
import char_gpt

PROFILES = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stack": {"with_stack": True},
    "modules": {"with_modules": True},
}


def gpt_step():
    """One step: forward, backward, optimizer."""
    size = char_gpt.SIZES["demo"]
    run = char_gpt.Run(size, 0, 1000)
    inputs = T.randint(96, (size.batch, size.context))

    def step() -> None:
        loss = char_gpt.loss_of(run.model, inputs, inputs)
        run.optimizer.zero_grad()
        loss.backward()
        run.optimizer.step()

    return step


def mlp_step(width: int):
    """The same of three layers."""
    nn = T.nn
    layers = [nn.Linear(width, width), nn.ReLU()] * 2
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    x, y = T.randn(64, width), T.randint(10, (64,))

    def step() -> None:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def ratio(step, scope, rounds: int, repeats: int) -> float:
    """The median of pairs of `repeats` steps, with the scope over without."""

    def spent(context) -> float:
        with context:
            begin = time.process_time()
            for _ in range(repeats):
                step()
            return time.process_time() - begin

    spent(scope()), spent(contextlib.nullcontext())
    pairs = []
    for _ in range(rounds):
        plain = spent(contextlib.nullcontext())
        pairs.append(spent(scope()) / plain)
    return statistics.median(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    T.set_num_threads(1)
    step = gpt_step()
    for name, options in PROFILES.items():
        scope = lambda options=options: T.autograd.profiler.profile(**options)
        print(f"gpt {name:8} {ratio(step, scope, rounds, 3):.3f}", flush=True)
    print(f"gpt nan_guard {ratio(step, T.debug.nan_guard, rounds, 3):.3f}", flush=True)
    for width in (64, 128, 256, 512):
        repeats = 16384 // width
        value = ratio(mlp_step(width), T.debug.nan_guard, rounds, repeats)
        print(f"mlp {width:4} nan_guard {value:.3f}", flush=True)


if __name__ == "__main__":
    main()
