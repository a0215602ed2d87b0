"""Compiling small programs over aten/math at each ISA level."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FLAGS = ["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math"]
LEVELS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": [
        *("-mavx512f", "-mavx512vl", "-mavx512bw", "-mavx512dq"),
        *("-mavx2", "-mfma", "-mf16c", "-mprefer-vector-width=512"),
    ],
}
# What /proc/cpuinfo must list before a level's programs can run.
NEEDS = {
    "baseline": set(),
    "avx2": {"avx2", "fma", "f16c"},
    "avx512": {"avx512f", "avx512vl", "avx512bw", "avx512dq"},
}


@cache
def cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":", 1)[1].split())
    return set()


def runs_here(level: str) -> bool:
    return NEEDS[level] <= cpu_flags()


def include_folder(folder: Path) -> Path:
    """A folder in which `taeda/...` names the source tree."""
    link = folder / "taeda"
    if not link.exists():
        link.symlink_to(ROOT)
    return folder


def compile_cpp(
    source: Path, output: Path, level: str, include: Path, *extra: str
) -> str:
    """Builds one file; the compiler's messages are the result."""
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, *FLAGS, *LEVELS[level], f"-I{include}", *extra]
    done = subprocess.run(
        [*command, str(source), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr
