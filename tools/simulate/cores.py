"""Cores that processes take in turn."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Cores"]


class Cores:
    """The cores that ranks share, where nothing is sent.

    A rank that waits for a call which others have not come to leaves its core to the
    rank that has been ready for longest, of those that had this core before if there is
    one; who comes last goes on. So each rank finds in the caches what it will find when
    ranks do wait for each other.

    Args:
        folder: where `make` has put the file `cores`, which is the state that ranks
            share, and a pipe `turn.R` that wakes each rank.
        rank: this one.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self._rank = rank
        self._file = os.open(folder / "cores", os.O_RDWR)
        with self._state() as state:
            ranks = len(state["last"])
        self._pipes = [os.open(folder / f"turn.{r}", os.O_RDWR) for r in range(ranks)]
        self._received = [0] * ranks
        # By number of a call, whose calls are waited for, and how many of them.
        self._needs: dict[int, tuple[str, int]] = {}

    @staticmethod
    def make(folder: Path, cores: int, ranks: int) -> None:
        """Writes the files."""
        state = {
            "cores": cores,
            "free": [],
            "ready": [],
            "last": [rank % cores for rank in range(ranks)],  # the core each has had
            "awaits": {},
            # How often each rank has called collectives, and sent to another.
            "called": [0] * ranks,
            "sent": {f"{a}-{b}": 0 for a in range(ranks) for b in range(ranks)},
        }
        (folder / "cores").write_text(json.dumps(state))
        for rank in range(ranks):
            os.mkfifo(folder / f"turn.{rank}")

    def join(self) -> None:
        """Waits until all ranks have come, and for a core.

        Who began alone would find the caches as no other rank leaves them, and keep
        those from starting that have not come yet.
        """
        with self._state() as state:
            state["ready"].append(self._rank)
            if len(state["ready"]) == len(state["last"]):
                state["free"] = [*range(state["cores"])]
        self._sleep()

    def leave(self) -> None:
        """Ends: another rank has the core."""
        with self._state() as state:
            state["free"].append(state["last"][self._rank])

    def call(self, kind: str, number: int, peer: int) -> None:
        """Comes to a call; those that waited for it are ready."""
        if kind == "recv":
            self._received[peer] += 1
            self._needs[number] = f"{peer}-{self._rank}", self._received[peer]
            return
        with self._state() as state:
            if kind == "send":
                state["sent"][f"{self._rank}-{peer}"] += 1
            else:
                state["called"][self._rank] += 1
                self._needs[number] = "all", state["called"][self._rank]
            awaits = state["awaits"]
            for rank in [r for r in awaits if _have_come(state, *awaits[r])]:
                del awaits[rank]
                state["ready"].append(int(rank))

    def wait(self, number: int) -> None:
        """Waits for a call that this rank has come to."""
        needs = self._needs.pop(number, None)
        with self._state() as state:
            if needs is None or _have_come(state, *needs):
                return
            state["awaits"][str(self._rank)] = needs
            state["free"].append(state["last"][self._rank])
        self._sleep()

    @contextlib.contextmanager
    def _state(self) -> Iterator[dict]:
        """What ranks share, to be changed; then ready ranks have the free cores."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        state = json.loads(os.pread(self._file, 1 << 16, 0))
        begin: list[int] = []
        try:
            yield state
            while state["free"] and state["ready"]:
                begin.append(_next(state))
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(state).encode(), 0)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        for rank in begin:
            os.write(self._pipes[rank], b".")

    def _sleep(self) -> None:
        os.read(self._pipes[self._rank], 1)


def _have_come(state: dict, whom: str, count: int) -> bool:
    if whom == "all":
        return min(state["called"]) >= count
    return state["sent"][whom] >= count


def _next(state: dict) -> int:
    """The rank that has a free core now."""
    free, ready, last = state["free"], state["ready"], state["last"]
    rank = next((r for r in ready if last[r] in free), ready[0])
    core = last[rank] if last[rank] in free else free[0]
    ready.remove(rank)
    free.remove(core)
    last[rank] = core
    return rank
