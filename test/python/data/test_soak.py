"""Some faults of the soak, and that it would notice what it looks for."""

from __future__ import annotations

import dataclasses
import gc
import signal
import sys
import threading
from pathlib import Path

import pytest
from soak import LIMIT, Strike, strikes, summary
from soak_cases import FAULTS, METHODS, cases, draw
from taeda.utils.data import DataLoader
from taeda.utils.data._utils.interrupts import Undisturbed

SEED, SLOT = 7, 0.4
# Every fault, and Ctrl-C with workers that fork and that begin anew.
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 9, 11, 14, 31)


def test_random_faults() -> None:
    done = list(strikes((draw(SEED, n, SLOT) for n in NUMBERS), pace=0.0))
    assert {s.case.fault for s in done} == set(FAULTS)
    assert [(s.case, s.problems) for s in done if s.problems] == []
    assert list(summary(done))[-1] == f"{len(NUMBERS)} faults, 0 with problems"


def test_a_seed_has_all_faults_and_is_the_same_again() -> None:
    drawn = list(cases(SEED, 80, SLOT))
    assert drawn == list(cases(SEED, 80, SLOT))
    assert {(c.fault, c.method) for c in drawn} == {
        (fault, method) for fault in FAULTS for method in METHODS
    }


KILLED = "RuntimeError: DataLoader worker 1 (pid 17) is killed by signal: Killed "


@pytest.mark.parametrize(
    ("fault", "told", "problem"),
    [
        ("kill", {"error": KILLED + "(exit code -9). It may have"}, None),
        ("kill", {"error": KILLED.replace("17", "18")}, "not a clear error"),
        ("kill", {"error": "Wrong: a pass gave [0.0]"}, "not a clear error"),
        ("kill", {"error": None}, None),
        ("ctrl-c", {"error": None}, "the fault was not told"),
        ("ctrl-c", {"error": "KeyboardInterrupt: "}, None),
        (
            "ctrl-c",
            {"error": "KeyboardInterrupt: ", "left": {"processes": [3]}},
            "left behind: {'processes': [3]}",
        ),
        ("ctrl-c", {"error": "KeyboardInterrupt: ", "at": LIMIT + 1}, "late"),
    ],
)
def test_answers_are_judged(fault, told, problem) -> None:
    class Told:
        def answer(self, seconds: float) -> dict:
            return {"at": 0.1, "left": {}} | told

    case = dataclasses.replace(draw(SEED, 0, SLOT), fault=fault, persistent=False)
    strike = Strike(case, Told())
    strike._victim = 17
    strike._await_the_answer(struck=0.0)
    assert [p[: len(problem)] for p in strike.problems] == [problem] * bool(problem)


def interrupted(block: Undisturbed) -> tuple[bool, bool]:
    """Whether the block went on after Ctrl-C, and whether it came afterwards."""
    went_on = False
    try:
        with block:
            signal.raise_signal(signal.SIGINT)
            went_on = True
        threading.Event().wait(1.0)
    except KeyboardInterrupt:
        return went_on, True
    return went_on, False


@pytest.mark.parametrize("finalizer", [False, True])
def test_an_interrupt_waits_for_the_end_of_a_block(finalizer) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert interrupted(Undisturbed(finalizer)) == (True, True)
    assert signal.getsignal(signal.SIGINT) is before


def test_who_insists_interrupts_a_block(monkeypatch) -> None:
    from taeda.utils.data._utils import interrupts

    monkeypatch.setattr(interrupts, "_PATIENCE_SECONDS", -1.0)
    reached = False
    with pytest.raises(KeyboardInterrupt), Undisturbed():
        signal.raise_signal(signal.SIGINT)
        reached = True
        signal.raise_signal(signal.SIGINT)
    assert reached


def test_a_thread_is_not_interrupted() -> None:
    seen = []

    def body() -> None:
        with Undisturbed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_a_second_interrupt_while_workers_are_ended_leaves_nothing(monkeypatch) -> None:
    loader = DataLoader(list(range(64)), 4, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    end_workers, receive = type(batches)._end_workers, type(batches)._receive_some

    def pulled(self) -> None:
        receive(self)
        signal.raise_signal(signal.SIGINT)

    def pulled_again(self) -> None:
        signal.raise_signal(signal.SIGINT)  # waits for the end of the block
        end_workers(self)

    monkeypatch.setattr(type(batches), "_receive_some", pulled)
    monkeypatch.setattr(type(batches), "_end_workers", pulled_again)
    workers = [worker.process for worker in batches._workers]
    with pytest.raises(KeyboardInterrupt):
        for _ in batches:
            pass
    assert loader._iterator is None
    assert not any(process.is_alive() for process in workers)
    # Batches lie in the frames of the error's traceback.
    del batches, workers
    gc.collect()
    assert "taeda-batch" not in Path("/proc/self/maps").read_text()


def test_a_loader_that_nobody_holds_goes_in_one_collection() -> None:
    samples = list(range(64))

    def break_off() -> None:
        loader = DataLoader(samples, 4, num_workers=1, persistent_workers=True)
        next(iter(loader))

    before = sys.getrefcount(samples)
    break_off()
    gc.collect()
    assert sys.getrefcount(samples) == before
