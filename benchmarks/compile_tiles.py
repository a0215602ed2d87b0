#!/usr/bin/env python3
"""Compiled programs on a machine without a C++ compiler: tiles, or calls.

    python benchmarks/compile_tiles.py [--rounds 15]

Each row is a program on float32 tensors of a shape; `ratio` is its time over that of
the program as it is (median of rounds in turns, process time of one thread). Pointwise
programs run by tiles, reductions and formulas of many steps as their calls.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time

os.environ["TAEDA_CXX"] = "no-such-compiler"
os.environ["TAEDA_CACHE_DIR"] = tempfile.mkdtemp()

import taeda
from taeda.nn import functional as F

SHAPES = ((16, 64), (300, 700), (2000, 2000))


def cheap(x, y):
    return (x * y + 1).relu() * 0.5 - y


def masked(x, y):
    return taeda.where(x > y, x, -y) + (x < 0).float()


def halves(x, y):
    return (x.bfloat16() * y.bfloat16() + 1).relu() * 2


def functions(x, y):
    return taeda.tanh(x * y + 1).exp() * taeda.sigmoid(x)


def joined(x, y):
    return taeda.cat([x, y * 2], 1)


def gelu(x, y):
    return F.gelu(x + y)


def softmax(x, y):
    return taeda.softmax(x * 2 + y, -1)


PROGRAMS = (cheap, masked, halves, functions, joined, gelu, softmax)


def seconds(f, args, calls):
    start = time.process_time()
    for _ in range(calls):
        f(*args)
    return (time.process_time() - start) / calls


def ratio(f, args, rounds):
    """The median of a compiled call's time over an eager one's, and the latter."""
    compiled = taeda.compile(f, fullgraph=True)
    compiled(*args)
    calls = max(1, int(0.02 / max(seconds(f, args, 3), 1e-7)))
    pairs = [
        (seconds(compiled, args, calls), seconds(f, args, calls)) for _ in range(rounds)
    ]
    eager = statistics.median(b for _, b in pairs)
    return statistics.median(a / b for a, b in pairs), eager


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    taeda.set_num_threads(1)
    print(f"{'program':<12}{'shape':>14}{'eager us':>12}{'ratio':>8}")
    for shape in SHAPES:
        x, y = taeda.randn(shape), taeda.randn(shape)
        for f in PROGRAMS:
            share, eager = ratio(f, (x, y), rounds)
            size = "x".join(map(str, shape))
            print(f"{f.__name__:<12}{size:>14}{eager * 1e6:>12.1f}{share:>8.2f}")


if __name__ == "__main__":
    main()
