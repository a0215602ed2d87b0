"""Predicts training steps.

    python -m tools.simulate predict FILE  steps on this machine, not yet measured
    python -m tools.simulate measure FILE  what they take, beside the predictions
    python -m tools.simulate turns FILE    both by turns, where other programs run
    python -m tools.simulate published  weak scaling of Llama 3 8B, beside what is known
    python -m tools.simulate scale      the same model on 8 to 100,000 ranks
    python -m tools.simulate failures   the share of time that is of use

Run in the repository's root, with PYTHONPATH=python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from . import clusters
from .faults import Failures
from .settings import KINDS, Setting

if TYPE_CHECKING:
    from .check import Row

RANKS = (8, 64, 128, 512, 1024, 4096, 16_384, 100_000)
WORLDS = (2, 3, 4, 8)
LIMIT = 0.15


def _settings(options: argparse.Namespace) -> list[Setting]:
    return options.settings or [Setting(k, n) for k in KINDS for n in WORLDS]


def _predict(options: argparse.Namespace) -> None:
    from .check import predicted

    predicted(_settings(options), options.file, options.rounds)


def _measure(options: argparse.Namespace) -> None:
    from .check import measured

    _print_rows(measured(options.file, options.rounds))


def _turns(options: argparse.Namespace) -> None:
    from .check import in_turns

    _print_rows(in_turns(_settings(options), options.file, options.rounds))


def _print_rows(found: Iterable[Row]) -> None:
    print("| setting | measured, ms | predicted, ms | error |\n|---|---|---|---|")
    rows = []
    for row in found:
        rows.append(row)
        print(
            f"| {row.setting} | {row.measured * 1e3:.1f} | "
            f"{row.predicted * 1e3:.1f} | {row.error:+.0%} |",
            flush=True,
        )
    good = sum(abs(row.error) <= LIMIT for row in rows)
    print(f"{good} of {len(rows)} within {LIMIT:.0%}")


def _published(_options: argparse.Namespace) -> None:
    from .plan import llama3_8b

    events = llama3_8b()
    spreads = (clusters.SPREAD, 0.01, 0.0)
    names = " | ".join(f"spread {s:.1%}" for s in spreads)
    print(f"| GPUs | from, to | published | {names} |\n|---|---|---|---|---|---|")
    for found in clusters.PUBLISHED:
        jobs = [clusters.Job(events, spread=s) for s in spreads]
        told = " | ".join(f"{clusters.weak_scaling(j, found):.1%}" for j in jobs)
        print(
            f"| {found.name} | {found.few}, {found.many} | {found.efficiency:.1%} | "
            f"{told} |"
        )


def _scale(_options: argparse.Namespace) -> None:
    from .plan import llama3_8b

    flat, hybrid = llama3_8b(), llama3_8b(copies=True)
    jobs = [clusters.Job(flat), clusters.Job(hybrid, 8), clusters.Job(hybrid, 64)]
    step = clusters.TOKENS / clusters.PUBLISHED[1].few_rate
    computing = jobs[0].computing(8, step)
    print("| ranks | over all | over 8 | over 64 | of use |\n|---|---|---|---|---|")
    for ranks in RANKS:
        shares = [f"{step / job.step(ranks, computing):.1%}" for job in jobs]
        if ranks < 64:
            shares[2] = "-"
        useful = clusters.LLAMA3.useful(ranks)
        print(f"| {ranks:,} | {' | '.join(shares)} | {useful:.1%} |")


def _failures(_options: argparse.Namespace) -> None:
    costs = ((5.0, 600.0), (60.0, 600.0), (5.0, 60.0))
    names = " | ".join(f"{c:g} s, {r:g} s" for c, r in costs)
    print(f"| ranks | a failure every | best interval | {names} |")
    print("|---|---|---|---|---|---|")
    between = clusters.LLAMA3.between
    for ranks in RANKS:
        shares = [f"{Failures(between, c, r).useful(ranks):.1%}" for c, r in costs]
        mean, interval = between / ranks, clusters.LLAMA3.interval(ranks)
        print(
            f"| {ranks:,} | {mean / 3600:.1f} h | {interval / 60:.1f} min | "
            f"{' | '.join(shares)} |"
        )


def main() -> None:
    """Prints what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for run in (_predict, _measure, _turns):
        command = commands.add_parser(run.__name__[1:])
        command.add_argument("file", type=Path)
        command.add_argument("--rounds", type=int, default=3)
        command.set_defaults(run=run)
        if run is not _measure:
            command.add_argument("--settings", type=Setting.parse, nargs="+")
    others = {"published": _published, "scale": _scale, "failures": _failures}
    for name, run in others.items():
        commands.add_parser(name).set_defaults(run=run)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
