"""The loop that all fuzzers share."""

from __future__ import annotations

import argparse
import itertools
import mmap
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable

BATCH = 1000  # inputs a process: what one leaks or breaks, later ones do not see
HANG = 60.0  # seconds that one input may take before its process is ended


class _Shared:
    """What the child tells the parent, who may find it dead."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 40)

    def __setitem__(self, place: int, value: int) -> None:
        self.memory[8 * place : 8 * place + 8] = value.to_bytes(8, "little")

    def __getitem__(self, place: int) -> int:
        return int.from_bytes(self.memory[8 * place : 8 * place + 8], "little")


SEED, TRIED, ACCEPTED, STARTED, NOTED = range(5)


def _attempts(
    attempt: Callable[[random.Random], bool | str],
    seeds: Iterable[int],
    shared: _Shared,
) -> int:
    """The loop itself."""
    for seed in seeds:
        shared[SEED], shared[STARTED] = seed, time.monotonic_ns()
        try:
            accepted = attempt(random.Random(seed))
        except Exception:
            traceback.print_exc()
            return 1
        shared[TRIED] += 1
        if isinstance(accepted, str):
            print(f"seed {seed}: {accepted}", flush=True)
            shared[NOTED] += 1
        else:
            shared[ACCEPTED] += accepted
    return 0


def _batch(
    attempt: Callable[[random.Random], bool | str],
    seeds: Iterable[int],
    shared: _Shared,
    end: float,
) -> int:
    """The exit status of a child that works on some seeds."""
    shared[STARTED] = time.monotonic_ns()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            seeds = itertools.takewhile(lambda _: time.monotonic() < end, seeds)
            status = _attempts(attempt, seeds, shared)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic_ns() - shared[STARTED] > HANG * 1e9:
            print(f"no end after {HANG} seconds", flush=True)
            os.kill(child, signal.SIGKILL)
        time.sleep(0.05)


def main(name: str, attempt: Callable[[random.Random], bool | str]) -> int:
    """Calls `attempt` with fresh generators until the time is over.

    `attempt` returns whether its input was accepted (False: refused with the
    documented error), or a text that is printed and counted where it found what is
    known, and lets every other exception through. It runs in children, so
    that a crash or a hang too is reported with its seed.
    """
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--count", type=int, help="this many inputs, in any time")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    first, last = options.first, 2**62
    if options.seed is not None:
        first, last = options.seed, options.seed + 1
    elif options.count is not None:
        last = first + options.count
    if last < 2**62:
        end = float("inf")
    shared, code = _Shared(), 0
    while first < last and time.monotonic() < end and code == 0:
        stop = min(first + BATCH, last)
        code = _batch(attempt, range(first, stop), shared, end)
        first = stop
    if code != 0:
        print(f"{name}: status {code}; repeat with --seed {shared[SEED]}", flush=True)
        return 1
    print(
        f"{name}: {shared[TRIED]} inputs, {shared[ACCEPTED]} accepted,"
        f" {shared[NOTED]} noted, no finding",
        flush=True,
    )
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
