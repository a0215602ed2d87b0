#!/usr/bin/env python3
"""Holds the cells that do not pass to test/opinfo/known_gaps.toml, both ways.

    .ci/known_gaps.py known_gaps.toml results.jsonl...

A cell that does not pass and is in no gap is an error, and so is an operator of a gap
all of whose cells pass: its line is to be taken out. Where a gap `varies`, that is
said only, since another processor may round as the reference does.
"""

from __future__ import annotations

import itertools
import json
import sys
import tomllib

NOT_PASSING = ("fail", "missing", "crash", "timeout")
Cell = tuple[str, str, str]


def read_failing(paths: list[str]) -> set[Cell]:
    """Operator, dtype and check of all cells that do not pass."""
    rows = []
    for path in paths:
        with open(path) as lines:
            rows += [json.loads(line) for line in lines]
    return {
        (row["op"], row["dtype"], row["check"])
        for row in rows
        if row.get("status") in NOT_PASSING
    }


def compare(gaps: list[dict], failing: set[Cell]) -> tuple[list[str], list[str]]:
    """Errors, and what is only said."""
    errors, notes, known = [], [], set()
    for gap in gaps:
        for operator in gap["operators"]:
            cells = {*itertools.product([operator], gap["dtypes"], gap["checks"])}
            known |= cells
            if cells.isdisjoint(failing):
                said = notes if gap.get("varies") else errors
                said.append(f"{operator} passes: {gap['reason']}")
    errors += [f"not a known gap: {'/'.join(cell)}" for cell in sorted(failing - known)]
    return errors, notes


def main(table: str, *results: str) -> int:
    """The command line; 1 where something does not agree."""
    with open(table, "rb") as file:
        gaps = tomllib.load(file)["gap"]
    failing = read_failing([*results])
    errors, notes = compare(gaps, failing)
    for line in notes:
        print(f"known gaps, on this processor: {line}")
    for line in errors:
        print(f"known gaps: {line}")
    print(f"known gaps: {len(failing)} cells do not pass, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
