"""Signals, threads and forks while functions are captured and run."""

from __future__ import annotations

import _thread
import os
import threading
import time

import pytest
import taeda
from taeda._logging import set_logs


def interrupted(function, *args):
    """Calls a function that runs until it is interrupted."""
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            function(*args)
    finally:
        timer.cancel()
        timer.join()


def test_a_capture_is_interrupted() -> None:
    tried = []

    def forever(x, go):
        k = 0
        try:
            while go:
                k += 1
        except KeyboardInterrupt:
            tried.append(k)
        return x + 1

    compiled = taeda.compile(forever)
    interrupted(compiled, taeda.ones(1), True)
    # The handler is the program's, and capture's interruption none of its own.
    assert not tried
    assert compiled(taeda.ones(1), False).tolist() == [2]


def test_a_function_that_runs_as_it_is_written_is_interrupted() -> None:
    left = []

    def forever(x):
        taeda._dynamo.graph_break()
        try:
            while float(x) > 0:
                pass
        finally:
            left.append(1)

    interrupted(taeda.compile(forever), taeda.ones(()))
    assert left == [1]


def test_other_threads_run_beside_a_capture() -> None:
    ticks, stop = [], threading.Event()
    now = taeda.compiler.assume_constant_result(lambda: time.perf_counter())

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    def long(x):
        before = now()
        for _ in range(10_000_000):
            pass
        return x + 1, before, now()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        _, before, after = taeda.compile(long)(taeda.ones(1))
    finally:
        stop.set()
        thread.join()
    # In the middle of the loop, where nothing but the loop lets them in.
    third = (after - before) / 3
    assert any(before + third < t < after - third for t in ticks)


def test_a_child_of_a_thread_that_compiles_may_compile() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(gm, inputs):
        entered.set()
        leave.wait(20)
        return gm.forward

    compiled = taeda.compile(lambda x: x + 1, backend=slow)
    thread = threading.Thread(target=compiled, args=(taeda.ones(1),))
    thread.start()
    entered.wait(20)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            out = taeda.compile(lambda x: x * 3)(taeda.ones(1)).tolist()
            code = 0 if out == [3] else 2
        finally:
            os._exit(code)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_what_capture_raised_is_logged(caplog) -> None:
    set_logs(graph_breaks=True)

    def fails(x):
        y = x + 1
        return y, {}["key"]

    try:
        with pytest.raises(KeyError, match="key"):
            taeda.compile(fails)(taeda.ones(1))
    finally:
        set_logs()
    assert "raised KeyError('key') while it was captured" in caplog.text
