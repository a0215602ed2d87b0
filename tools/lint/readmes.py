#!/usr/bin/env python3
"""A README.md of at most 15 lines in every folder (the root's may be longer), and no
absolute path of somebody's machine in any tracked file."""

from __future__ import annotations

import pathlib
import re
import sys

from tree import ROOT, files, report

MAX_LINES = 15
# Folders that stand for other people's: the paths of PyTorch's headers.
FOREIGN = pathlib.Path("csrc/extension/torch_headers")
MACHINE = re.compile(r"(?<![\w.])/(?:tmp|work|root|home)/\w")


def main() -> int:
    """Checks every folder that holds a file; 1 when there are findings."""
    errors: list[str] = []
    folders: set[pathlib.Path] = set()
    for path in files():
        if not path.parts[0].startswith("."):
            folders.update(path.parents)
        text = (ROOT / path).read_text(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE.search(line):
                errors.append(f"{path}:{number}: absolute path of a machine")
    for folder in sorted(folders):
        if folder.is_relative_to(FOREIGN):
            continue
        readme = ROOT / folder / "README.md"
        if not readme.exists():
            errors.append(f"{folder}: no README.md")
        elif folder != pathlib.Path("."):
            lines = len(readme.read_text().splitlines())
            if lines > MAX_LINES:
                errors.append(f"{folder}/README.md: {lines} lines, {MAX_LINES} allowed")
    return report("readmes", errors)


if __name__ == "__main__":
    sys.exit(main())
