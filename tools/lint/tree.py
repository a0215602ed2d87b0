"""The files that the lints look at."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = (".cpp", ".h", ".cu", ".cuh")


def files(*suffixes: str) -> Iterator[pathlib.Path]:
    """Files that git tracks or would track, relative to the tree's root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in sorted(set(filter(None, listed.split("\0")))):
        path = pathlib.Path(name)
        full = ROOT / path
        if (not suffixes or path.suffix in suffixes) and full.is_file():
            yield path


def report(name: str, errors: list[str], warnings: list[str] | None = None) -> int:
    """Prints findings and returns the exit status. Warnings are only counted,
    unless -v is given."""
    warnings = warnings or []
    for line in errors:
        print(line)
    if "-v" in sys.argv[1:]:
        for line in warnings:
            print(f"{line} (warning)")
    note = f", {len(warnings)} warnings (-v shows them)" if warnings else ""
    print(f"{name}: {len(errors)} errors{note}")
    return int(bool(errors))
