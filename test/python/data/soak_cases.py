"""The cases of a soak, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

# What befalls a worker, which its loader tells; what Ctrl-C does to the program's
# group of processes; and what ends the program.
WORKER = ("kill", "terminate", "fault", "stop")
CTRL_C = ("ctrl-c", "ctrl-c twice")
PROGRAM = ("program kill", "program terminate")
FAULTS = ("kill", "ctrl-c", "program kill", "terminate", "ctrl-c twice", "stop")
FAULTS += ("ctrl-c", "fault", "kill", "program terminate")
METHODS = ("fork", "spawn", "fork", "forkserver")


@dataclass(frozen=True)
class Case:
    """One fault of one program, and the loader that it hits.

    Times are in seconds: `moment` from the first pass to the fault, `again` from there
    to a second Ctrl-C, `seconds` at most for a sample.
    """

    number: int
    fault: str
    moment: float
    again: float
    method: str
    workers: int
    batch: int
    stream: bool
    large: bool
    persistent: bool
    broken_off: bool
    seconds: float


def draw(seed: int, number: int, slot: float) -> Case:
    """The case of a number: the same for a seed, whatever came before.

    Args:
        slot: the fault comes within so many seconds.
    """
    choose = random.Random(f"{seed}/{number}")
    return Case(
        number=number,
        fault=FAULTS[number % len(FAULTS)],
        moment=choose.uniform(0.0, slot),
        again=choose.choice((0.0, 0.01, 0.3)) * choose.random(),
        method=METHODS[number // len(FAULTS) % len(METHODS)],
        workers=choose.choice((1, 2, 3)),
        batch=choose.choice((1, 4, 5)),
        stream=choose.random() < 0.3,
        large=choose.random() < 0.5,
        persistent=choose.random() < 0.3,
        broken_off=choose.random() < 0.4,
        seconds=choose.choice((0.0, 0.005, 0.02)),
    )


def cases(seed: int, count: int, slot: float) -> Iterator[Case]:
    """So many, in turns of the faults and of the ways to start a worker."""
    for number in range(count):
        yield draw(seed, number, slot)
