"""A pytest plugin: `torch` is this library before tests are read; outcomes are kept.

TESTED_LIBRARY is "here" or "torch"; TEST_OUTCOMES the file that outcomes are written
to, a JSON object a line; TEST_LIMIT the seconds after which a test has failed.
"""

from __future__ import annotations

import json
import os
import signal

import pytest

from . import helpers, sources

if os.environ.get("TESTED_LIBRARY") == "here":
    helpers.install(sources.folder())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Ends a test that takes too long, so that those after it are counted too."""
    limit = int(os.environ["TEST_LIMIT"])

    def end(number, frame):
        signal.alarm(5)  # a test may catch the first one
        pytest.fail(f"more than {limit} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report) -> None:
    """Writes how a test ended, and why if it failed."""
    if report.when != "call" and report.outcome == "passed":
        return
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    why = ""
    if report.outcome != "passed":
        lines = [
            s for s in str(report.longrepr or "").splitlines() if s.startswith("E ")
        ]
        why = lines[0][2:].strip()[:300] if lines else str(report.longrepr)[-300:]
    row = {"test": report.nodeid, "outcome": report.outcome, "why": why}
    with open(os.environ["TEST_OUTCOMES"], "a") as file:
        print(json.dumps(row), file=file)


def pytest_collectreport(report) -> None:
    """Writes why a file could not be read."""
    if report.failed:
        row = {"test": report.nodeid, "outcome": "unread", "why": str(report.longrepr)}
        with open(os.environ["TEST_OUTCOMES"], "a") as file:
            print(json.dumps(row), file=file)
