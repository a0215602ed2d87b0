"""Runs a load in a process of its own and says how it ended and what it cost."""

from __future__ import annotations

import faulthandler
import io
import json
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import taeda
from taeda._io import limits

SECONDS = 2.0
REFUSALS = (
    "UnpicklingError",
    "RuntimeError",
    "NotImplementedError",
    "SafetensorError",
)


@dataclass
class Outcome:
    """How a call ended.

    Args:
        kind: "result", the name of an exception's class, "hang" or "signal N".
        text: the result or the exception, in short.
        seconds: processor time. growth: bytes of resident memory at the peak, above
            those at the start.
    """

    kind: str
    text: str = ""
    seconds: float = 0.0
    growth: int = 0


def resident(field: str) -> int:
    """A size in bytes out of /proc/self/status: VmRSS now, VmHWM at the peak."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    raise AssertionError(f"no {field} in /proc/self/status")


def forget_peak() -> None:
    """The peak begins anew at what is resident now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measured(function: Callable[[], str]) -> Outcome:
    """Calls it in this process; `function` says in short what came out."""
    forget_peak()
    before, start = resident("VmRSS"), time.process_time()
    try:
        kind, text = "result", function()
    except Exception as error:
        kind, text = type(error).__name__, str(error)
    seconds = time.process_time() - start
    return Outcome(kind, text[:2000], seconds, resident("VmHWM") - before)


def _child(function: Callable[[], str], target: int, seconds: float) -> None:
    status = 1
    try:
        faulthandler.disable()  # a crash is reported by the parent
        limit = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        outcome = measured(function)
        os.write(target, json.dumps(vars(outcome)).encode())
        status = 0
    finally:
        os._exit(status)


def guarded(function: Callable[[], str], seconds: float = 30.0) -> Outcome:
    """Calls it in a child, which may crash, or be killed after its time."""
    source, target = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(source)
        _child(function, target, seconds)
    os.close(target)
    watchdog = threading.Timer(4 * seconds, os.kill, (child, signal.SIGKILL))
    watchdog.start()
    with os.fdopen(source, "rb") as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    watchdog.cancel()
    if answer:
        return Outcome(**json.loads(answer))
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome("hang", f"killed after {seconds} seconds of processor time")
    return Outcome(f"signal {-code}")


def quickest(attempt: Callable[[], Outcome]) -> Outcome:
    """Measures again what took too long: a busy machine makes processor time dear."""
    for _ in range(3):
        outcome = attempt()
        if outcome.seconds < SECONDS and outcome.kind != "hang":
            break
    return outcome


def assert_refused(data: bytes, text: str, load: Callable | None = None) -> None:
    """A load of these bytes ends with a clear error that matches `text`, cheaply."""
    load = load or (lambda raw: taeda.load(io.BytesIO(raw)))
    outcome = quickest(lambda: guarded(lambda: type(load(data)).__name__, SECONDS))
    assert outcome.kind in REFUSALS, outcome
    assert re.search(text, outcome.text), outcome
    assert len(outcome.text) < 1000, len(outcome.text)
    assert outcome.seconds < SECONDS, outcome
    assert outcome.growth < 3 * len(data) + limits.FLOOR, (outcome, len(data))
