"""Loaders with workers used from several threads at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest
import taeda
from taeda.utils import data

THREADS, LOADERS, SAMPLES = 8, 4, 6


class Marked(data.Dataset):
    """Tensors large enough for memory of their own, small ones, and plain values."""

    def __init__(self, mark: int) -> None:
        self.mark = mark

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int):
        value = float(self.mark * SAMPLES + index)
        large = [taeda.full((96, 96), value + part / 8) for part in range(3)]
        return {"large": large, "small": taeda.full((3,), value), "index": index}


def wrong_values(mark: int, number: int, batch: dict) -> list[str]:
    """What differs from the truth in a batch."""
    wrong = []
    indices = [2 * number, 2 * number + 1]
    values = taeda.tensor([float(mark * SAMPLES + i) for i in indices])
    if batch["index"].tolist() != indices:
        wrong.append(f"loader {mark}: {batch['index']} in place of {indices}")
    if not batch["small"].equal(values[:, None].expand(2, 3)):
        wrong.append(f"loader {mark}: small {batch['small'][:, 0]}, not {values}")
    for part, large in enumerate(batch["large"]):
        want = (values + part / 8)[:, None, None].expand(2, 96, 96)
        if not large.equal(want):
            wrong.append(f"loader {mark}: large {large[:, 0, 0]}, not {values}")
    return wrong


@pytest.fixture
def eager_switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(count: int, work) -> None:
    """Run `work(number)` in threads; the first error is raised here."""
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_loaders_in_threads_keep_to_their_own_values(eager_switching) -> None:
    wrong: list[str] = []
    seen = []

    def work(thread: int) -> None:
        marks = range(LOADERS * thread, LOADERS * (thread + 1))
        loaders = [
            data.DataLoader(Marked(mark), batch_size=2, num_workers=1) for mark in marks
        ]
        for number, batches in enumerate(zip(*loaders, strict=True)):
            for mark, batch in zip(marks, batches, strict=True):
                wrong.extend(wrong_values(mark, number, batch))
                seen.append((mark, number))

    in_threads(THREADS, work)
    assert wrong == []
    marks, numbers = range(THREADS * LOADERS), range(SAMPLES // 2)
    assert sorted(seen) == [(m, n) for m in marks for n in numbers]


class Crowded:
    """A context in which other processes have copies of all descriptors.

    As if another thread had forked at the very moment at which a worker starts.
    """

    def __init__(self) -> None:
        self.pids: list[int] = []

    def context(self):
        import multiprocessing

        base, pids = multiprocessing.get_context("fork"), self.pids

        class Process(base.Process):
            def start(self) -> None:
                pid = os.fork()
                if pid == 0:
                    time.sleep(60)
                    os._exit(0)
                pids.append(pid)
                super().start()

        made = type(base)()
        made.Process = Process
        return made

    def end(self) -> None:
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class Ending(Marked):
    def __init__(self) -> None:
        super().__init__(0)

    def __getitem__(self, index: int):
        return os._exit(3) if index == 5 else index


@pytest.fixture
def crowded():
    made = Crowded()
    yield made.context()
    made.end()


def test_a_death_is_seen_though_others_hold_the_sockets(crowded) -> None:
    started = time.monotonic()
    loader = data.DataLoader(
        Ending(),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=crowded,
        timeout=30,
    )
    with pytest.raises(RuntimeError, match=r"worker 1 \(pid \d+\) exited .* code 3"):
        list(loader)
    assert time.monotonic() - started < 10


def test_workers_end_at_once_though_others_hold_the_sockets(crowded) -> None:
    loader = data.DataLoader(
        Marked(0), num_workers=2, multiprocessing_context=crowded, timeout=30
    )
    iterator = iter(loader)
    next(iterator)
    processes = [w.process for w in iterator._workers]
    iterator.close()
    assert [p.exitcode for p in processes] == [0, 0]  # nobody had to stop them
