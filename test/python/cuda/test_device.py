"""Programs on CUDA tensors, run on the emulated devices of test/emulator.

Each `device_*.py` is a file of tests of its own: devices are a matter of a process's
environment, so they run in another one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# How many tests a file has at least: a suite that collects nothing fails.
FILES = {
    "device_memory.py": 12,
    "device_streams.py": 9,
    "device_operators.py": 200,
    "device_faults.py": 6,
}


def emulated() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tools"))
    from devtool import emulate

    return os.environ | emulate.environment()


def test_all_files_are_here() -> None:
    assert {path.name for path in HERE.glob("device_*.py")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_programs_on_emulated_devices(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", str(HERE / name)]
    done = subprocess.run(command, env=emulated(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = [word for word in done.stdout.split() if word.isdigit()]
    assert passed and int(passed[-1]) >= FILES[name], done.stdout[-300:]
