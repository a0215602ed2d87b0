"""Importing the optimizers is light."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "inspect logging dataclasses pickle zipfile multiprocessing re typing enum copy"
).split()


def test_heavy_modules_stay_out() -> None:
    program = (
        "import sys, taeda\n"
        "before = set(sys.modules)\n"
        "import taeda.optim\n"
        "taeda.optim.Adam; taeda.optim.lr_scheduler\n"
        "print(*(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    added = set(done.stdout.split())
    assert any(name.startswith("taeda.optim.") for name in added)
    assert not added & set(HEAVY)
