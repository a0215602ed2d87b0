#!/usr/bin/env python3
"""clang-format on every C++ file; with --fix it rewrites them."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tree import CPP, ROOT, files, report

VERSION = "18."
BATCH = 20


def _program() -> str | None:
    beside = pathlib.Path(sys.executable).with_name("clang-format")
    return str(beside) if beside.exists() else shutil.which("clang-format")


def main() -> int:
    """Checks (or fixes) all files; 1 when one is not formatted."""
    program = _program()
    version = (
        program
        and subprocess.run(
            [program, "--version"], capture_output=True, text=True
        ).stdout
    )
    if not version or f"version {VERSION}" not in version:
        return report("format", [f"clang-format {VERSION}x is needed, got {version}"])
    paths = [str(path) for path in files(*CPP)]
    mode = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]

    def check(batch: list[str]) -> list[str]:
        done = subprocess.run(
            [program, *mode, *batch], cwd=ROOT, capture_output=True, text=True
        )
        first = re.findall(r"^(\S+?):(\d+):\d+: error: (.*)", done.stderr, re.M)
        return [f"{name}:{line}: {what}" for name, line, what in first]

    batches = [paths[i : i + BATCH] for i in range(0, len(paths), BATCH)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        findings = [line for found in pool.map(check, batches) for line in found]
    one_per_file = {line.split(":")[0]: line for line in reversed(findings)}
    return report("format", sorted(one_per_file.values()))


if __name__ == "__main__":
    sys.exit(main())
