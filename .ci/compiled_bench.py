"""Compiled over own eager time of the judge's training steps and layers.

    PYTHONPATH=python:JUDGES .venv/bin/python .ci/compiled_bench.py [--group train,nn]
        [--case PART ...] [--rounds 9]

Each case's body is timed as it is and under `compile` in turn, on the same tensors (two
builds of one eager case differ by up to 3 %), in one process with one thread. A
figure is the median over rounds of the ratio of CPU seconds; the end tells the geometric
mean and which are above 1.02.
"""

import argparse
import math
import statistics
import time

import taeda
from bench import registry
from bench.worker import compile_body

BLOCK_SECONDS = 0.025
WARM_CALLS = 4


def seconds(body, calls):
    """CPU seconds of one of so many calls."""
    start = time.process_time()
    for _ in range(calls):
        body()
    return (time.process_time() - start) / calls


def ratio_of(case, rounds):
    """Median of compiled / eager, and eager seconds of a call."""
    _, eager = compile_body(case.build(taeda))
    compiled = taeda.compile(eager, options={"blocking": True})
    for body in (eager, compiled):
        for _ in range(WARM_CALLS):
            body()
    calls = max(1, round(BLOCK_SECONDS / max(seconds(eager, 2), 1e-7)))
    ratios, base = [], []
    for i in range(rounds):
        order = (eager, compiled) if i % 2 else (compiled, eager)
        spent = {body: seconds(body, calls) for body in order}
        ratios.append(spent[compiled] / spent[eager])
        base.append(spent[eager])
    return statistics.median(ratios), statistics.median(base)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--group", default="train,nn")
    parser.add_argument("--case", nargs="*", default=[""])
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    taeda.set_num_threads(1)
    registry.load()
    ratios = {}
    for case in registry.select(args.group.split(","), args.case):
        try:
            ratios[case.id], base = ratio_of(case, args.rounds)
        except Exception as error:  # one case costs no other its figure
            print(f"{case.id:44s} {type(error).__name__}: {error}"[:120], flush=True)
            continue
        print(f"{case.id:44s} {ratios[case.id]:.3f} {base * 1e6:9.1f} us", flush=True)
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios.values()))
    above = sorted(id for id, r in ratios.items() if r > 1.02)
    print(f"{len(ratios)} cases, geometric mean {mean:.3f}; above 1.02: {len(above)}")
    print(*above, sep="\n")


if __name__ == "__main__":
    main()
