"""Compiles C++ files of this folder, with the sources they test, for ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def build(
    name: str, sources: list[str], out: Path, flags: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """Compiles `sources` (relative to the repository) into `out`/`name`.so."""
    include = out / "include" / "taeda"
    include.mkdir(parents=True, exist_ok=True)
    for folder in ("c10", "aten"):
        link = include / folder
        if not link.exists():
            link.symlink_to(ROOT / folder)
    library = out / f"{name}.so"
    command = ["g++", "-std=c++20", "-O3", "-fPIC", "-shared", "-fopenmp-simd"]
    command += ["-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math"]
    command += ["-Wall", "-Werror", *flags, f"-I{out / 'include'}"]
    command += [str(ROOT / source) for source in sources]
    subprocess.run([*command, "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="session")
def build_shim() -> Callable[..., ctypes.CDLL]:
    """The function `build`, for tests that name sources of the repository."""
    return build
