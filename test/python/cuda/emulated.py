"""Runs a file of tests on the emulated devices of test/emulator.

Devices are a matter of a process's environment, so tests that need them stand in
`device_*.py` and run in a process of their own; `test_device_*.py` start these, files
that take about as long as each other, so that workers get equal shares.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# How many tests a file has at least: a suite that collects nothing fails.
FILES = {
    "device_memory.py": 14,
    "device_streams.py": 9,
    "device_operators.py": 200,
    "device_faults.py": 14,
    "device_kernels.py": 14,
    "device_layers.py": 15,
    "device_random.py": 10,
    "device_pools.py": 20,
    "device_graphs.py": 17,
    "device_sharing.py": 7,
    "device_products.py": 42,
    "device_convolutions.py": 45,
    "device_fourier.py": 20,
    "device_linalg.py": 60,
    "device_sparse.py": 30,
    "device_backward.py": 17,
    "device_rows.py": 30,
    "device_optimizers.py": 20,
    "device_sorting.py": 30,
    "device_lists.py": 31,
    "device_amp.py": 14,
    "device_scans.py": 20,
    "device_moves.py": 17,
    "device_indexing.py": 13,
    "device_attention.py": 44,
    "device_sequences.py": 41,
    "device_pooling.py": 24,
}


def environment() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tools"))
    from devtool import emulate

    return os.environ | emulate.environment()


# Counts of bytes are those of blocks without red zones.
SETTINGS = {
    "device_memory.py": {"TAEDA_EMULATOR_RED_ZONE": "0"},
    "device_pools.py": {"TAEDA_EMULATOR_RED_ZONE": "0"},
}

# A test reads what another stream has not yet written.
EXPECTED = {"device_streams.py": "mul_kernel, block (0, 0)"}


def run(name: str, share: tuple[int, int] = (0, 1), **settings: str) -> None:
    """All tests of a file, or share `(i, n)` of them: each n-th from the i-th on."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", str(HERE / name)]
    taken = environment() | SETTINGS.get(name, {}) | settings
    taken["TAEDA_TEST_SHARE"] = f"{share[0]}/{share[1]}"
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder, "reports")
        taken["TAEDA_EMULATOR_REPORTS"] = str(reports)
        done = subprocess.run(command, env=taken, capture_output=True, text=True)
        found = reports.read_text().splitlines() if reports.exists() else []
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    # What the memory checker found, besides what a test is about.
    assert [
        line for line in found if not line.startswith(EXPECTED.get(name, "-"))
    ] == []
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= FILES[name] // share[1], done.stdout[-300:]
