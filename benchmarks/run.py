"""Times this library beside PyTorch: the one benchmark runner.

    tools/dev bench                      every group but the linalg ones
    tools/dev bench call training        some groups
    tools/dev bench --each               a line per case
    tools/dev bench --json FILE          the figures as JSON

Each library runs in a process of its own with one thread. A case alternates between
them (A B B A ...); a figure is the median of the pairs' ratios of CPU time, taeda /
torch: below 1, taeda is quicker. The group "start" compares importing: CPU seconds,
resident memory, installed bytes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

from cases import CASES, MORE_CASES, SETUP

LIBRARIES = ("taeda", "torch")
BLOCK_SECONDS = 0.02
START = "start"


def serve(library: str) -> None:
    """The measured process: reads cases and block lengths, answers with seconds."""
    module = __import__(library)
    module.set_num_threads(1)
    space: dict[str, object] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "setup" in order:
            module.manual_seed(0)
            space = {"T": module}
            exec(SETUP + order["setup"], space)
            source = f"def run(n):\n for _ in range(n):\n  {order['statement']}"
            exec(source, space)
            space["run"](3)
        start = time.process_time()
        space["run"](order["calls"])
        print(time.process_time() - start, flush=True)


class Side:
    """One library's process."""

    def __init__(self, library: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def ask(self, **order: object) -> float:
        """Seconds that a block of calls took."""
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the measured process ended on {order}")
        return float(answer)

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def ratio(sides: list[Side], setup: str, statement: str, pairs: int) -> float:
    """taeda / torch: the median over pairs of blocks."""
    calls = []
    for side in sides:
        seconds = side.ask(setup=setup, statement=statement, calls=1)
        count = 1
        while seconds < BLOCK_SECONDS / 4:
            count *= 4
            seconds = side.ask(calls=count)
        calls.append(max(1, round(count * BLOCK_SECONDS / seconds)))
    found = []
    for pair in range(pairs):
        each = [0.0, 0.0]
        for k in (0, 1) if pair % 2 == 0 else (1, 0):
            each[k] = sides[k].ask(calls=calls[k]) / calls[k]
        found.append(each[0] / each[1])
    return statistics.median(found)


IMPORT = """
import time; start = time.process_time()
import {library}
seconds = time.process_time() - start
with open("/proc/self/statm") as file:
    print(seconds, int(file.read().split()[1]))
"""


def installed_bytes(library: str) -> int:
    """Bytes of the package's folder, links followed (a build in place has some)."""
    folder = pathlib.Path(importlib.util.find_spec(library).origin).parent
    files = {
        p.resolve() for top in os.walk(folder, followlinks=True) for p in entries(top)
    }
    return sum(p.stat().st_size for p in files if p.is_file())


def entries(top: tuple) -> list[pathlib.Path]:
    """The files of one step of os.walk, without byte code."""
    folder, _, names = top
    return [pathlib.Path(folder, n) for n in names if not n.endswith(".pyc")]


def start_ratios(pairs: int) -> dict[str, float]:
    """Importing: CPU time, memory of the process, size on disk."""
    found: dict[str, list[list[float]]] = {name: [] for name in LIBRARIES}
    for _ in range(pairs + 1):
        for name in LIBRARIES:
            done = subprocess.run(
                [sys.executable, "-c", IMPORT.format(library=name)],
                capture_output=True,
                text=True,
                check=True,
            )
            found[name].append([float(word) for word in done.stdout.split()])
    # The first import of each fills the file cache.
    middle = [
        [statistics.median(c) for c in zip(*found[n][1:], strict=True)]
        for n in LIBRARIES
    ]
    ours, peers = middle
    sizes = [installed_bytes(name) for name in LIBRARIES]
    return {
        "import_seconds": ours[0] / peers[0],
        "import_memory": ours[1] / peers[1],
        "installed_bytes": sizes[0] / sizes[1],
    }


def measure(groups: list[str], pairs: int) -> dict[str, dict[str, float]]:
    """group -> case -> ratio."""
    figures: dict[str, dict[str, float]] = {}
    sides = [Side(name) for name in LIBRARIES]
    for group in groups:
        if group == START:
            figures[group] = start_ratios(pairs)
            continue
        figures[group] = {
            name: ratio(sides, setup, statement, pairs)
            for name, (setup, statement) in (CASES | MORE_CASES)[group].items()
        }
    for side in sides:
        side.close()
    return figures


def main() -> int:
    """Measures the named groups and prints a table."""
    names = [*CASES, START]
    every = [*names, *MORE_CASES]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(every)}")
    parser.add_argument("--each", action="store_true", help="a line per case")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    unknown = set(options.groups) - set(every)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    figures = measure(options.groups or names, options.pairs)
    print("| group | cases | taeda / torch | lowest | highest |\n|---|---|---|---|---|")
    for group, cases in figures.items():
        low, high = min(cases, key=cases.get), max(cases, key=cases.get)
        if group != START:
            middle = math.exp(statistics.fmean(map(math.log, cases.values())))
            print(
                f"| {group} | {len(cases)} | {middle:.3f} | {low} {cases[low]:.3f} "
                f"| {high} {cases[high]:.3f} |"
            )
        for name, value in cases.items() if options.each or group == START else ():
            print(f"| {group}.{name} | 1 | {value:.3f} | | |")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
