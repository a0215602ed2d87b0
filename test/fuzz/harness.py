"""The loop that all fuzzers share."""

from __future__ import annotations

import argparse
import itertools
import mmap
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterable


def _attempts(
    name: str,
    attempt: Callable[[random.Random], bool],
    seeds: Iterable[int],
    seconds: float,
    current: mmap.mmap,
) -> int:
    """The loop itself; `current` holds the seed at work for who finds it dead."""
    end = time.monotonic() + seconds
    tried = accepted = 0
    for seed in seeds:
        if time.monotonic() > end:
            break
        current[:8] = seed.to_bytes(8, "little")
        try:
            accepted += attempt(random.Random(seed))
        except Exception:
            traceback.print_exc()
            return 1
        tried += 1
    print(f"{name}: {tried} inputs, {accepted} accepted, no finding", flush=True)
    return 0


def main(name: str, attempt: Callable[[random.Random], bool]) -> int:
    """Calls `attempt` with fresh generators until the time is over.

    `attempt` returns whether its input was accepted (False: refused with the
    documented error), and lets every other exception through. It runs in a child, so
    that a crash too is reported with its seed.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    options = parser.parse_args()
    seeds = itertools.count(options.first) if options.seed is None else [options.seed]
    current = mmap.mmap(-1, 8)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _attempts(name, attempt, seeds, options.seconds, current)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        seed = int.from_bytes(current[:8], "little")
        print(f"{name}: status {code}; repeat with --seed {seed}", flush=True)
    return int(code != 0)


def mutate(data: bytes, source: random.Random) -> bytes:
    """A few edits of the kinds that break parsers: flip, drop, repeat, cut."""
    out = bytearray(data)
    for _ in range(source.randint(1, 6)):
        if not out:
            break
        at = source.randrange(len(out))
        size = source.choice([1, 1, 2, 4, 16, 64])
        kind = source.randrange(4)
        if kind == 0:
            out[at] = source.randrange(256)
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size] * source.randint(1, 3)
        else:
            other = source.randrange(len(out))
            out[at : at + size] = out[other : other + size]
    return bytes(out)


if __name__ == "__main__":
    sys.exit("run one of the fuzz_*.py beside this file")
