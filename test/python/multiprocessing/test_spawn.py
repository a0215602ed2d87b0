"""One function in several processes: what it raises, how they end, what is left."""

from __future__ import annotations

import logging
import os
import signal
import time

import pytest
import spawn_programs
import taeda.multiprocessing as mp

METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("parallel", ["0", "1"])
@pytest.mark.parametrize("method", METHODS)
def test_each_gets_its_number(method, parallel, monkeypatch) -> None:
    monkeypatch.setenv(mp.ENV_VAR_PARALLEL_START, parallel)
    results = mp.get_context(method).SimpleQueue()
    arguments = spawn_programs.give_rank, (results,)
    mp.start_processes(*arguments, nprocs=3, start_method=method)
    assert sorted(results.get() for _ in range(3)) == [0, 1, 2]


@pytest.mark.parametrize("length", [10, 300_000])
def test_a_traceback_of_any_length_arrives(length) -> None:
    """Waiting for a process that waits for room in its pipe would never end."""
    arguments = spawn_programs.raise_long, (length,)
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(*arguments, nprocs=2, start_method="fork")
    text = str(caught.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\n")
    assert text.endswith("\nValueError: " + "x" * length + "\n")
    assert caught.value.error_index == 1


@pytest.mark.parametrize(
    ("grace", "seconds", "told"),
    [
        (None, 60.0, ["Terminating process %d via signal SIGTERM"]),
        (0.1, 60.0, ["Terminating process %d via signal SIGTERM"]),
        (30.0, 0.5, []),
    ],
)
def test_others_have_the_grace_to_end_by_themselves(
    grace, seconds, told, caplog
) -> None:
    arguments = spawn_programs.first_exits, (3, seconds)
    started = mp.start_processes(*arguments, nprocs=2, join=False, start_method="fork")
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(
            mp.ProcessExitedException, match="process 0 terminated with exit code 3"
        ),
    ):
        while not started.join(grace_period=grace):
            pass
    pid = started.pids()[1]
    assert [r.getMessage() for r in caplog.records] == [text % pid for text in told]
    assert started.processes[1].exitcode == (-signal.SIGTERM if told else 0)


def test_a_signal_is_named() -> None:
    with pytest.raises(mp.ProcessExitedException, match="with signal SIG(ABRT|IOT)"):
        mp.spawn(spawn_programs.first_aborts, nprocs=2)


def test_join_returns_when_the_time_is_over() -> None:
    results = mp.get_context("fork").SimpleQueue()
    arguments = spawn_programs.tell_and_sleep, (results,)
    started = mp.start_processes(*arguments, join=False, start_method="fork")
    results.get()
    begun = time.monotonic()
    assert started.join(timeout=0.1) is False
    assert time.monotonic() - begun < 30
    started.processes[0].kill()
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        started.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_end_with_the_one_that_started_them(method) -> None:
    results = mp.get_context(method).SimpleQueue()
    arguments = spawn_programs.start_and_be_killed, (method, results)
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        mp.start_processes(*arguments, start_method=method)
    left, end = results.get(), time.monotonic() + 30
    while any(map(runs, left)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(runs, left))


def runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_errors_can_be_pickled() -> None:
    import pickle

    for error in (
        mp.ProcessRaisedException("no", 1, os.getpid()),
        mp.ProcessExitedException("no", 1, os.getpid(), 3, "SIGABRT"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert vars(again) == vars(error)
