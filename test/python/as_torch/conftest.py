"""How the tests of this folder start programs."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest


def _run(program: pathlib.Path | str, *arguments, real: bool = False) -> str:
    """What a program prints.

    Args:
        program: its file, or its text.
        real: on PyTorch; else on this library, under as_torch.
    """
    if isinstance(program, str):
        install = "" if real else "from taeda.as_torch import install; install()\n"
        command = ["-c", f"{install}{textwrap.dedent(program)}"]
    else:
        command = [str(program)] if real else ["-m", "taeda.as_torch", str(program)]
    done = subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def run():
    return _run
