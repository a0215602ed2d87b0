#!/usr/bin/env python3
"""`taeda.compile` of programs that meet 30 sizes: how often, how long, how fast.

    python benchmarks/compile_sizes.py [--threads 1] [--rounds 15]

A size is the batch of a small MLP, the length of a GPT block's sequence, the rows or
the columns of pointwise programs. All figures are of one process with an empty cache of
kernels; a call of a step is forward and backward.

    graphs    compilations and traced versions of all of them
    units     texts that the C++ compiler was called with
    meet      seconds of the first calls at all sizes, kernels being made meanwhile
    first     seconds of the first call at the first size and at the second one, which
              makes the size a symbol
    static    a call's time against that of a program compiled for its sizes alone,
              and `eager` against the program as it is: least process time in turns
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import taeda
from taeda import nn
from taeda._compiler import compile as compile_graph
from taeda.compiler import _default

SIZES = [8 * k + 5 for k in range(1, 31)]
F = nn.functional


class Block(nn.Module):
    """A block of a GPT."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.read, self.write = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.read(self.before(x)).chunk(3, -1)
        split = (rows, length, self.heads, width // self.heads)
        q, k, v = (p.view(split).transpose(1, 2) for p in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.write(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.between(x))))


def mlp():
    net = nn.Sequential(
        *(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))
    )

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    return step, lambda n: (taeda.randn(n, 64), taeda.randint(0, 10, (n,)))


def gpt_block():
    net = Block()

    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return step, lambda n: (taeda.randn(4, n, 128),)


def chain():
    def program(x, y):
        return ((x * y + 1).abs() * 0.5 - y).relu() * x + y

    return program, lambda n: (taeda.randn(n, 256), taeda.randn(256))


def softmax():
    return lambda x: F.softmax(x * 0.3 + 1, -1) * 2, lambda n: (taeda.randn(64, n),)


def tiny():
    return lambda x: x * 2 + 1, lambda n: (taeda.randn(n % 7 + 2, 4),)


def least(functions, given, rounds: int, calls: int = 30) -> list[float]:
    """The least process time of a call of each, in microseconds."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.process_time()
            for _ in range(calls):
                function(*given)
            times[i] = min(times[i], time.process_time() - start)
    return [t / calls * 1e6 for t in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    taeda.set_num_threads(options.threads)
    made = []

    def counted(*args, **kwargs):
        made.append(compile_graph(*args, **kwargs))
        return made[-1]

    _default._compiler.compile = counted
    for build in (mlp, gpt_block, chain, softmax, tiny):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["TAEDA_CACHE_DIR"] = cache
            report(build, made, cache, options.rounds)


def report(build, made: list, cache: str, rounds: int) -> None:
    taeda.manual_seed(0)
    program, data = build()
    made.clear()
    compiled = taeda.compile(program)
    inputs = [data(n) for n in SIZES]
    seconds = []
    for given in inputs:
        start = time.perf_counter()
        compiled(*given)
        seconds.append(time.perf_counter() - start)
    graphs = f"{len(made)}/{sum(len(m.graphs()) for m in made)}"
    waiting = taeda.compile(program, options={"blocking": True})
    for given in inputs[:3]:
        waiting(*given)
    units = sum(len(files) for _, _, files in os.walk(cache))
    first = ", ".join(f"{s:.3f}" for s in seconds[:2])
    print(
        f"{build.__name__}: graphs {graphs}, units {units}, "
        f"meet {sum(seconds):.2f}, first {first}"
    )
    for at in (1, 7, 29):
        given = inputs[at]
        fixed = taeda.compile(program, dynamic=False, options={"blocking": True})
        fixed(*given)
        ours, static, eager = least((waiting, fixed, program), given, rounds)
        print(
            f"  {SIZES[at]}: {ours:.1f} us, "
            f"static {ours / static:.2f}, eager {ours / eager:.2f}"
        )


if __name__ == "__main__":
    main()
