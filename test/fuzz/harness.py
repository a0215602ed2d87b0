"""The loop that all fuzzers share."""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable


def main(name: str, attempt: Callable[[random.Random], bool]) -> int:
    """Calls `attempt` with fresh generators until the time is over.

    `attempt` returns whether its input was accepted (False: refused with the
    documented error), and lets every other exception through.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="only this one")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    seeds = [options.seed] if options.seed is not None else iter(range(2**62))
    tried = accepted = 0
    for seed in seeds:
        if time.monotonic() > end:
            break
        try:
            accepted += attempt(random.Random(seed))
        except Exception:
            traceback.print_exc()
            print(f"{name}: finding; repeat with --seed {seed}", flush=True)
            return 1
        tried += 1
    print(f"{name}: {tried} inputs, {accepted} accepted, no finding", flush=True)
    return 0


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
