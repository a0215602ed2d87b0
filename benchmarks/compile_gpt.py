#!/usr/bin/env python3
"""`taeda.compile` of a training step of a GPT (`capture_gpt.py`): when, how large.

    python benchmarks/compile_gpt.py [--repeats 5] [--threads 1] [--torch torch]

Medians over processes, one for each figure; a step is forward and backward.

    first     seconds of the first step
    ready     the same where it waits for all kernels
    step      seconds of a later step
    peak      MiB that tensors take at most in a later step beside what stays

`cold` has an empty cache of kernels, `warm` that of a run before.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from capture_gpt import model

LENGTH, ROWS = 64, 4
LATER = 5


def peak_of(L, step) -> float:
    """MiB that tensors take at most in a call beside those that were there."""
    L._C._reset_cpu_peak()
    before = L._C._cpu_memory()[0]
    step()
    return (L._C._cpu_memory()[1] - before) / 2**20


def measure(library: str, mode: str, threads: int) -> dict[str, float]:
    """Figures of this process."""
    L = importlib.import_module(library)
    L.set_num_threads(threads)
    L.manual_seed(0)
    module, _ = model(L)
    module.train()
    index = L.randint(0, 1000, (ROWS, LENGTH))
    options = {"blocking": True} if mode == "ready" else None
    forward = module if mode == "eager" else L.compile(module, options=options)

    def step() -> None:
        forward(index).logsumexp(-1).mean().backward()
        module.zero_grad()

    # What both need once: threads, and the compiler's import.
    L.ones(1, requires_grad=True).exp().sum().backward()
    if mode != "eager":
        L.compile(lambda x: x + 1, backend="eager")(L.ones(1))
    begin = time.perf_counter()
    step()
    found = {"first": time.perf_counter() - begin}
    if mode in ("ready", "eager"):
        seconds = []
        for _ in range(LATER):
            begin = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - begin)
        found["step"] = statistics.median(seconds)
        if library == "taeda":
            found["peak"] = statistics.median(peak_of(L, step) for _ in range(LATER))
    return found


def in_process(library: str, mode: str, threads: int, cache: str) -> dict[str, float]:
    folders = ("TAEDA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
    run = subprocess.run(
        [sys.executable, __file__, "--measure", library, mode, str(threads)],
        env={**os.environ, **dict.fromkeys(folders, cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    """Print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--torch", default="none", help="also measure this library")
    parser.add_argument("--measure", nargs=3)
    options = parser.parse_args()
    if options.measure:
        library, mode, threads = options.measure
        print(json.dumps(measure(library, mode, int(threads))))
        return
    libraries = ["taeda", *([options.torch] if options.torch != "none" else [])]
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.repeats):
        for library in libraries:
            with tempfile.TemporaryDirectory() as cold:
                runs = {"eager": ("eager", cold), "cold": ("compiled", cold)}
                if library == "taeda":
                    with tempfile.TemporaryDirectory() as empty:
                        one = in_process(library, "ready", options.threads, empty)
                        two = in_process(library, "compiled", options.threads, empty)
                    named = {f"ready {k}": v for k, v in one.items()}
                    named |= {f"warm {k}": v for k, v in two.items()}
                    for name, value in named.items():
                        found.setdefault((library, name), []).append(value)
                for name, (mode, cache) in runs.items():
                    for k, v in in_process(
                        library, mode, options.threads, cache
                    ).items():
                        found.setdefault((library, f"{name} {k}"), []).append(v)
    for (library, name), values in found.items():
        print(f"{library:6} {name:12} {statistics.median(values):8.3f}")


if __name__ == "__main__":
    main()
