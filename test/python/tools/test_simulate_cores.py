"""tools/simulate: ranks that are recorded take turns on cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from simulate.cores import Cores


def run(folder: Path, cores: int, programs: list[Callable[[Cores], None]]) -> None:
    """Each program is a rank, in a thread."""
    Cores.make(folder, cores, len(programs))
    errors: list[BaseException] = []

    def rank(number: int) -> None:
        try:
            mine = Cores(folder, number)
            mine.join()
            programs[number](mine)
            mine.leave()
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=rank, args=(r,), daemon=True)
        for r in range(len(programs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert not errors


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_no_more_ranks_run_than_there_are_cores(tmp_path, cores) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def program(mine: Cores) -> None:
        nonlocal running, most
        for number in range(20):
            with lock:
                running += 1
                most = max(most, running)
            mine.call("all_reduce", number, -1)
            with lock:
                running -= 1
            mine.wait(number)

    run(tmp_path, cores, [program] * 4)
    assert 1 <= most <= cores


def test_who_comes_last_goes_on(tmp_path) -> None:
    """So with one core a rank has two parts after each other, but at the ends."""
    order: list[int] = []

    def program(rank: int) -> Callable[[Cores], None]:
        def steps(mine: Cores) -> None:
            for number in range(4):
                order.append(rank)
                mine.call("all_reduce", number, -1)
                mine.wait(number)

        return steps

    run(tmp_path, 1, [program(0), program(1)])
    first, second = order[0], 1 - order[0]
    assert order == [first, second, second, first, first, second, second, first]


def test_a_message_is_waited_for_until_it_was_sent(tmp_path) -> None:
    order: list[str] = []

    def receives(mine: Cores) -> None:
        mine.call("recv", 1, 1)
        mine.wait(1)
        order.append("received")

    def sends(mine: Cores) -> None:
        order.append("sent")
        mine.call("send", 1, 0)
        mine.wait(1)  # who sends waits for nobody

    run(tmp_path, 1, [receives, sends])
    assert order == ["sent", "received"]


def test_ranks_keep_their_cores(tmp_path) -> None:
    """Who is ready has the core that it had, where that is free."""
    seen: list[set[int]] = [set() for _ in range(4)]

    def program(mine: Cores) -> None:
        for number in range(10):
            with mine._state() as state:
                seen[mine._rank].add(state["last"][mine._rank])
            mine.call("all_reduce", number, -1)
            mine.wait(number)

    run(tmp_path, 4, [program] * 4)
    assert seen == [{0}, {1}, {2}, {3}]
