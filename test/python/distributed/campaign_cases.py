"""The campaign's cases, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LIMIT = 2.0  # seconds of a collective

# "beside" is "ddp" with checkpoints that are saved while it goes on.
PROGRAMS = (
    *("collectives", "messages"),
    *("ddp", "fsdp", "tensor", "pipeline", "beside"),
)
TRAININGS = PROGRAMS[2:]
# What programs outlive, and what survivors raise after.
OUTLIVED = tuple(
    "pause late blip lose slow worker-kill worker-stop worker-raise".split()
)
FAULTS = {
    "shared": ("kill", "stop", "pause", "raise", "late", "absent"),
    "gloo": ("kill", "stop", "pause", "raise", "late", "absent"),
    "network": ("cut", "cut-one-way", "blip", "lose", "slow", "kill"),
    "launched": tuple(
        "worker-kill worker-stop worker-raise agent-kill agent-term".split()
    ),
}


@dataclass(frozen=True)
class Case:
    """One fault of one program.

    Times are in seconds: `moment` from the first round to the fault, `duration` of one
    that passes, `seconds` that the program goes on, `limit` of a collective. `steps` is
    not 0 for training that ends after so many.
    """

    number: int
    program: str
    world: int
    route: str
    fault: str
    victims: tuple[int, ...]
    moment: float
    duration: float
    seconds: float
    limit: float
    steps: int = 0
    share: float = 0.0  # of packets that are lost

    @property
    def launched(self) -> bool:
        """Whether ranks are a launcher's workers."""
        return "-" in self.fault and self.fault.split("-")[0] in ("worker", "agent")

    @property
    def is_outlived(self) -> bool:
        """Whether the program ends as if nothing had happened."""
        return self.fault in OUTLIVED


def draw(seed: int, number: int, ways: Sequence[str] = tuple(FAULTS)) -> Case:
    """The case of a number: the same for a seed, whatever came before.

    Args:
        ways: those of FAULTS that this machine has.
    """
    choose = random.Random(f"{seed}/{number}")
    kind = ways[number % len(ways)]
    fault = FAULTS[kind][number // len(ways) % len(FAULTS[kind])]
    routes = [way for way in ("shared", "gloo") if way in ways]
    program = choose.choice(TRAININGS if kind == "launched" else PROGRAMS)
    world = 2 if kind == "launched" else choose.choice((2, 3, 4))
    several = fault == "kill" and world > 2 and choose.random() < 0.3
    victims = tuple(sorted(choose.sample(range(world), 2 if several else 1)))
    passes = fault in OUTLIVED
    return Case(
        number=number,
        program=program,
        world=world,
        route=choose.choice(routes) if kind == "launched" else kind,
        fault=fault,
        victims=victims,
        moment=choose.uniform(0.0, 1.0),
        duration=choose.uniform(0.1, 1.0),
        seconds=2.5 if passes else 120.0,
        # Retransmission waits twice as long each time.
        limit=20.0 if passes and kind != "launched" else LIMIT,
        steps=choose.randrange(150, 300) if kind == "launched" else 0,
        share=choose.uniform(0.005, 0.05),
    )


def cases(seed: int, count: int, ways: Sequence[str] = tuple(FAULTS)) -> Iterator[Case]:
    """So many, in turns of the ways for bytes and of their faults."""
    for number in range(count):
        yield draw(seed, number, ways)
