"""Programs on CUDA tensors, run on the emulated devices of test/emulator.

Each `device_*.py` is a file of tests of its own: devices are a matter of a process's
environment, so they run in another one. What they had compiled goes through NVRTC too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nvrtc import compile_source

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# How many tests a file has at least: a suite that collects nothing fails.
FILES = {
    "device_memory.py": 12,
    "device_streams.py": 9,
    "device_operators.py": 200,
    "device_faults.py": 6,
    "device_kernels.py": 14,
}
ARCHITECTURES = ("sm_80", "sm_90a")


def emulated() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tools"))
    from devtool import emulate

    return os.environ | emulate.environment()


def test_all_files_are_here() -> None:
    assert {path.name for path in HERE.glob("device_*.py")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_programs_on_emulated_devices(name: str, tmp_path: Path) -> None:
    environment = emulated()
    if name == "device_kernels.py":
        # Kept programs would not be compiled, and have no text here.
        environment |= {"TAEDA_CACHE_DIR": str(tmp_path / "programs")}
        environment |= {"TAEDA_EMULATOR_TEXTS": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", str(HERE / name)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = [word for word in done.stdout.split() if word.isdigit()]
    assert passed and int(passed[-1]) >= FILES[name], done.stdout[-300:]
    if name == "device_kernels.py":
        refused_by_nvrtc(tmp_path)


def refused_by_nvrtc(folder: Path) -> None:
    """Each kernel that sees all arguments, for one set of dtypes and one device."""
    texts = {}
    for path in sorted(folder.glob("*.cu")):
        text = path.read_text()
        if "struct Given" in text:
            texts.setdefault(re.sub(r"Elements<.*> ", "", text), text)
    assert len(texts) > 20
    refused = []
    for i, text in enumerate(texts.values()):
        architecture = ARCHITECTURES[i % len(ARCHITECTURES)]
        if log := compile_source("kernel.cu", text, architecture):
            refused.append(log[:2000])
    assert not refused, "\n".join(refused)
