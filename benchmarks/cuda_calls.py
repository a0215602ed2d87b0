"""Microseconds of the host for calls on a GPU that nobody waits for.

Usage: tools/dev emulate python benchmarks/cuda_calls.py   (or with a GPU, without
`tools/dev emulate`)

The least of 15 times 200 calls, of tensors of 16 x 16: what a call costs before its
kernel runs. With the emulator the queue's own cost is part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import taeda

TIMES, CALLS = 15, 200


def microseconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(TIMES):
        taeda.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - begin)
    taeda.cuda.synchronize()
    return best / CALLS * 1e6


def main() -> None:
    a, b = (taeda.randn(16, 16).cuda() for _ in range(2))
    weight = taeda.ones(16).cuda()
    layer_norm = taeda.nn.functional.layer_norm
    linear = taeda.nn.functional.linear
    batch = a.view(4, 4, 16)
    cases: dict[str, Callable[[], object]] = {
        "a + b": lambda: a + b,
        "a.sum()": lambda: a.sum(),
        "a @ b": lambda: a @ b,
        "addmm(w, a, b)": lambda: taeda.addmm(weight, a, b),
        "linear(x, a, w)": lambda: linear(batch, a, weight),
        "bmm": lambda: taeda.bmm(batch, batch.mT),
        "layer_norm": lambda: layer_norm(a, (16,), weight, weight),
        "a.cumsum(0)": lambda: a.cumsum(0),
    }
    for name, call in cases.items():
        print(f"{name:16s} {microseconds(call):6.2f} us")


if __name__ == "__main__":
    main()
