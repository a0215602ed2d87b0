"""Ctrl-C in the middle of training ends the program as soon as it can."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = pathlib.Path(__file__).parent / "programs" / "training.py"


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_ctrl_c_ends_training(delay) -> None:
    running = subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Started in the background, a shell's children would ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stdout.readline() == "running\n"
    time.sleep(delay)
    begin = time.monotonic()
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=30)
    assert time.monotonic() - begin < 10
    assert out == "interrupted True 4\n" and "KeyboardInterrupt" in errors
    assert running.returncode != 0 and "Fatal" not in errors
