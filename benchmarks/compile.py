#!/usr/bin/env python3
"""`compile` beside PyTorch's: time to the first result, and time of a call.

    python benchmarks/compile.py [CASE ...] [--rounds 15] [--torch none]

For each program of `compile_cases.py` (one thread):
    cold, warm  seconds of the first call in a new process, less those of an eager one,
                with an empty cache on disk and with the one that the first run left
    own         compiled / eager time of a call here
    compiled    compiled here / compiled by PyTorch
    eager       compiled here / PyTorch's eager
A figure of calls is the median over rounds that measure all in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from compile_cases import CASES

BLOCK_SECONDS = 0.02
# What both libraries take a moment for after the first call.
SETTLE_SECONDS = 20.0
# Calls in a row, 0.05 s apart, that are no faster than before: kernels of a long graph
# take seconds to compile beside other work, and calls are slower until they are there.
QUIET_CALLS = 100


def serve(library: str, name: str, mode: str) -> None:
    """The measured process: tells its first call's seconds, then those of blocks."""
    module = __import__(library)
    module.set_num_threads(1)
    module.manual_seed(0)
    wrap = module.compile if mode == "compiled" else (lambda f: f)
    step = CASES[name](module, wrap)
    start = time.perf_counter()
    step()
    print(time.perf_counter() - start, flush=True)
    for line in sys.stdin:
        calls = int(line)
        start = time.process_time()
        for _ in range(calls):
            step()
        print(time.process_time() - start, flush=True)


class Side:
    """One library's process for one case."""

    def __init__(self, library: str, name: str, mode: str, cache: str) -> None:
        folders = ("TAEDA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", library, name, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"}
            | {folder: os.path.join(cache, library) for folder in folders},
        )
        self.first = self._answer()
        self.calls = 1

    def _answer(self) -> float:
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the measured process ended")
        return float(answer)

    def ask(self, calls: int) -> float:
        """CPU seconds of so many calls."""
        print(calls, file=self.process.stdin, flush=True)
        return self._answer()

    def settle(self, seconds: float) -> None:
        """Calls until code compiled beside the calls is in use; sets `calls`."""
        end = time.monotonic() + seconds
        best = math.inf
        still = 0
        while time.monotonic() < end and still < QUIET_CALLS:
            spent = self.ask(1)
            still = still + 1 if spent > 0.9 * best else 0
            best = min(best, spent)
            time.sleep(0.05)
        self.calls = max(1, round(BLOCK_SECONDS / best))

    def block(self) -> float:
        """CPU seconds of one call, from a block of them."""
        return self.ask(self.calls) / self.calls

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def first_call(library: str, name: str, mode: str, cache: str) -> float:
    """Seconds of the first call in a new process."""
    side = Side(library, name, mode, cache)
    side.settle(SETTLE_SECONDS if mode == "compiled" else 0)
    side.close()
    return side.first


def latencies(libraries: list[str], name: str) -> dict[str, list[float]]:
    """library -> cold and warm seconds above those of an eager first call."""
    found = {}
    for library in libraries:
        with tempfile.TemporaryDirectory() as cache:
            eager = first_call(library, name, "eager", cache)
            cold = first_call(library, name, "compiled", cache)
            warm = first_call(library, name, "compiled", cache)
        found[library] = [cold - eager, warm - eager]
    return found


def steady(libraries: list[str], name: str, rounds: int) -> dict[str, float]:
    """Medians of ratios between blocks of the same round."""
    with tempfile.TemporaryDirectory() as cache:
        modes = ("compiled", "eager")
        sides = {(x, m): Side(x, name, m, cache) for x in libraries for m in modes}
        for key, side in sides.items():
            side.settle(SETTLE_SECONDS if key[1] == "compiled" else 1.0)
        spent = {key: [] for key in sides}
        for turn in range(rounds):
            keys = list(sides)
            for key in keys if turn % 2 == 0 else reversed(keys):
                spent[key].append(sides[key].block())
        for side in sides.values():
            side.close()
    ours = spent["taeda", "compiled"]
    others = {"own": ("taeda", "eager")}
    if "torch" in libraries:
        others |= {"compiled": ("torch", "compiled"), "eager": ("torch", "eager")}
    return {
        label: statistics.median(a / b for a, b in zip(ours, spent[key], strict=True))
        for label, key in others.items()
    }


def main() -> int:
    """Prints a line a case, and geometric means."""
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch", choices=("beside", "none"), default="beside")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    libraries = ["taeda"] if options.torch == "none" else ["taeda", "torch"]
    found: dict[str, dict[str, float]] = {}
    for name in options.cases or CASES:
        first = latencies(libraries, name)
        row = {"cold": first["taeda"][0], "warm": first["taeda"][1]}
        if "torch" in first:
            row["torch cold"], row["torch warm"] = first["torch"]
        row |= steady(libraries, name, options.rounds)
        found[name] = row
        print(f"{name:16}", *(f"{k} {v:.3f}" for k, v in row.items()), flush=True)
    for label in ("own", "compiled", "eager"):
        values = [row[label] for row in found.values() if label in row]
        if values:
            print(f"{label}: geometric mean {statistics.geometric_mean(values):.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
