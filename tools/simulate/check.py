"""Predictions for this machine, written down, and what is measured on it later."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import events, machine
from .cores import Cores
from .engine import Group, replay
from .network import Host
from .settings import Setting

__all__ = ["Row", "in_turns", "measured", "predict", "predicted"]

STEPS = 24
LATER = 6  # steps that are replayed before those that count, and of these


@dataclass(frozen=True)
class Row:
    """Seconds of a step."""

    setting: Setting
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Of the prediction, relative to what was measured."""
        return self.predicted / self.measured - 1.0


def _train(setting: Setting, folder: Path, action: str) -> None:
    shared = [setting.ranks, folder, STEPS, action, setting.shape]
    machine.together(
        [
            machine.start("trainee", [setting.kind, r, *shared])
            for r in range(setting.ranks)
        ]
    )


def measure(setting: Setting) -> float:
    """Seconds of a step with real ranks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _train(setting, folder, "measure")
        paths = [folder / f"seconds.{r}" for r in range(setting.ranks)]
        return statistics.median(float(path.read_text()) for path in paths)


def record(setting: Setting, cores: int) -> dict[int, list[events.Event]]:
    """The ranks' schedules, recorded at once on the cores that they will share."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Cores.make(folder, cores, setting.ranks)
        _train(setting, folder, "record")
        ranks = range(setting.ranks)
        return {r: events.load(folder / f"schedule.{r}") for r in ranks}


def predict(schedules: dict[int, list[events.Event]], host: Host) -> float:
    """Seconds of a step of ranks that share a host: the mean of later ones.

    Ranks begin a step when they have ended the one before, not when all have.
    """
    everyone = tuple(schedules)
    groups = {"0": Group(everyone, len(everyone))}

    def seconds(steps: int) -> float:
        several = {r: events.repeated(e, steps) for r, e in schedules.items()}
        return replay(several, groups, host, cores=host.cores, slice=machine.SLICE)

    return (seconds(2 * LATER) - seconds(LATER)) / LATER


def _predicted_once(setting: Setting) -> float:
    cores = os.cpu_count() or 1
    host = machine.calibrate(cores, setting.ranks)
    return predict(record(setting, cores), host)


def predicted(settings: Iterable[Setting], path: Path, rounds: int = 3) -> None:
    """Writes predictions as JSON: medians of rounds of calibrating and recording."""
    found = {}
    for setting in settings:
        times = [_predicted_once(setting) for _ in range(rounds)]
        found[str(setting)] = statistics.median(times)
    path.write_text(json.dumps(found, indent=1))


def in_turns(settings: Iterable[Setting], path: Path, rounds: int = 3) -> Iterator[Row]:
    """A row for each setting, predicted and measured by turns; medians of rounds.

    On a machine that others use, which is another one a minute later. A round's
    prediction stands in `path`, a JSON object a line, before that round is measured.
    """
    for setting in settings:
        seen, told = [], []
        for _ in range(rounds):
            told.append(_predicted_once(setting))
            with path.open("a") as file:
                print(json.dumps({str(setting): told[-1]}), file=file)
            seen.append(measure(setting))
        yield Row(setting, statistics.median(seen), statistics.median(told))


def measured(path: Path, rounds: int = 3) -> Iterator[Row]:
    """A row for each prediction that `predicted` wrote; medians of rounds."""
    for text, seconds in json.loads(path.read_text()).items():
        setting = Setting.parse(text)
        times = [measure(setting) for _ in range(rounds)]
        yield Row(setting, statistics.median(times), seconds)
