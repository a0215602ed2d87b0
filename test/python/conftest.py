"""What holds in every test program.

Random numbers are the same in each run of a test, of whichever other tests it runs with
(`seeds`). What crashes says where (`tools/dev test` names the library that shows it),
what hangs stands by name in the folder that TAEDA_RUNNING_TESTS names, a file a
process, and Ctrl-C arrives: shells start what runs in the background without it.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import random
import signal
import sys
import zlib

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

_noted: set[str] = set()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """After pytest's own `faulthandler`, whose handler comes second.

    Both write to the standard error that was there before pytest caught it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if library := os.environ.get("TAEDA_CRASH_STACK"):
        file = session.config.stash[fault_handler_stderr_fd_key]
        ctypes.CDLL(library).show_crashes(file)


def seeds(test: str) -> None:
    """Seeds the generators of the libraries that are imported, by the test's name."""
    seed = zlib.crc32(test.encode())
    random.seed(seed)
    for name in ("taeda", "torch"):
        if manual_seed := getattr(sys.modules.get(name), "manual_seed", None):
            manual_seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    seeds(item.name)
    if folder := os.environ.get("TAEDA_RUNNING_TESTS"):
        pathlib.Path(folder, str(os.getpid())).write_text(item.nodeid)
    file = f"{item.path.parent.name}/{item.path.stem}"
    if file in _noted:
        return
    _noted.add(file)
    if library := os.environ.get("TAEDA_CRASH_STACK"):
        ctypes.CDLL(library).note_test_file(file.encode())


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    if folder := os.environ.get("TAEDA_RUNNING_TESTS"):
        pathlib.Path(folder, str(os.getpid())).unlink(missing_ok=True)
