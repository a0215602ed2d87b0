"""Predictions for this machine beside what was measured on it."""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import events, machine
from .engine import Group, replay
from .network import Host
from .trainee import KINDS

__all__ = ["Row", "check"]

STEPS = 24


@dataclass(frozen=True)
class Row:
    """Seconds of a step of so many ranks."""

    kind: str
    ranks: int
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Of the prediction, relative to what was measured."""
        return self.predicted / self.measured - 1.0


def measure(kind: str, ranks: int) -> float:
    """Seconds of a step with real ranks."""
    with tempfile.TemporaryDirectory() as name:
        arguments = [ranks, name, STEPS, "measure"]
        machine.together(
            [machine.start("trainee", [kind, r, *arguments]) for r in range(ranks)]
        )
        found = [float((Path(name) / f"seconds.{r}").read_text()) for r in range(ranks)]
    return statistics.median(found)


def record(kind: str, ranks: int, cores: int) -> dict[int, list[events.Event]]:
    """The ranks' schedules, recorded at once on the cores that they will share."""
    with tempfile.TemporaryDirectory() as name:
        os.mkfifo(Path(name) / "cores")
        tokens = os.open(Path(name) / "cores", os.O_RDWR)
        os.write(tokens, b"." * cores)
        arguments = [ranks, name, STEPS, "record"]
        machine.together(
            [machine.start("trainee", [kind, r, *arguments]) for r in range(ranks)]
        )
        os.close(tokens)
        return {r: events.load(Path(name) / f"schedule.{r}") for r in range(ranks)}


def predict(schedules: dict[int, list[events.Event]], host: Host) -> float:
    """Seconds of a step of ranks that share a host."""
    everyone = tuple(schedules)
    groups = {"0": Group(everyone, len(everyone))}
    return replay(schedules, groups, host, cores=host.cores, slice=machine.SLICE)


def check(kinds: tuple[str, ...] = KINDS, worlds=(2, 4, 8), rounds: int = 3):
    """Rows of all kinds and numbers of ranks; medians of rounds, which take turns.

    Args:
        rounds: of calibrating, recording and measuring.
    """
    cores = os.cpu_count() or 1
    for kind in kinds:
        for ranks in worlds:
            pairs = []
            for _ in range(rounds):
                host = machine.calibrate(cores)
                schedules = record(kind, ranks, cores)
                pairs.append((measure(kind, ranks), predict(schedules, host)))
            measured, predicted = (
                statistics.median(p) for p in zip(*pairs, strict=True)
            )
            yield Row(kind, ranks, measured, predicted)
