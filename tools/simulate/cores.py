"""Cores that processes take in turn."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Cores"]

# Numbers of the file: free cores, all cores, how many ranks are ready.
_FREE, _CORES, _READY = range(3)
_HEAD = 3


class Cores:
    """The cores that ranks share, where nothing is sent.

    A rank that waits for a call which others have not come to leaves its core to the
    rank that has been ready for longest; who comes last goes on. So each rank finds in
    the caches what it will find when ranks do wait for each other.

    Args:
        folder: where `make` has put the file `cores` and a pipe `turn.R` for each rank.
        rank: this one.
        ranks: how many there are.
    """

    def __init__(self, folder: Path, rank: int, ranks: int) -> None:
        self._rank, self._ranks = rank, ranks
        self._file = os.open(folder / "cores", os.O_RDWR)
        self._state = memoryview(mmap.mmap(self._file, 0)).cast("I")
        self._pipes = [os.open(folder / f"turn.{r}", os.O_RDWR) for r in range(ranks)]
        at = _HEAD + ranks
        # By rank, what it waits for: how many calls of whom (its peer and one; 0 is
        # all ranks), or no calls.
        self._awaited = self._state[at : at + 2 * ranks]
        at += 2 * ranks
        # How often each rank has called a collective, and sent to each.
        self._called = self._state[at : at + ranks]
        self._sent = self._state[at + ranks : at + ranks + ranks * ranks]
        self._received = [0] * ranks
        self._needs: dict[int, tuple[int, int]] = {}

    @staticmethod
    def make(folder: Path, cores: int, ranks: int) -> None:
        """Writes the files."""
        numbers = _HEAD + 4 * ranks + ranks * ranks
        state = memoryview(bytearray(4 * numbers)).cast("I")
        state[_CORES] = cores
        (folder / "cores").write_bytes(state)
        for rank in range(ranks):
            os.mkfifo(folder / f"turn.{rank}")

    def join(self) -> None:
        """Waits until all ranks have come, and for a core.

        Who began alone would find the caches as no other rank leaves them, and keep
        those from starting that have not come yet.
        """
        with self._locked():
            self._make_ready(self._rank)
            if self._state[_READY] == self._ranks:
                self._state[_FREE] = self._state[_CORES]
        self._sleep()

    def leave(self) -> None:
        """Ends: the next rank has the core."""
        with self._locked():
            self._state[_FREE] += 1

    def call(self, kind: str, number: int, peer: int) -> None:
        """This rank comes to a call; those that waited for it are ready."""
        if kind == "recv":
            self._received[peer] += 1
            self._needs[number] = peer + 1, self._received[peer]
            return
        with self._locked():
            if kind == "send":
                self._sent[self._rank * self._ranks + peer] += 1
            else:
                self._called[self._rank] += 1
                self._needs[number] = 0, self._called[self._rank]
            for rank in range(self._ranks):
                whom, count = self._awaited[2 * rank : 2 * rank + 2]
                if count and self._have_come(rank, whom, count):
                    self._awaited[2 * rank + 1] = 0
                    self._make_ready(rank)

    def wait(self, number: int) -> None:
        """Waits for a call that this rank has come to."""
        whom, count = self._needs.pop(number, (0, 0))
        with self._locked():
            if self._have_come(self._rank, whom, count):
                return
            self._awaited[2 * self._rank] = whom
            self._awaited[2 * self._rank + 1] = count
            self._state[_FREE] += 1
        self._sleep()

    def _have_come(self, rank: int, whom: int, count: int) -> bool:
        if whom:
            return self._sent[(whom - 1) * self._ranks + rank] >= count
        return min(self._called) >= count

    def _make_ready(self, rank: int) -> None:
        self._state[_HEAD + self._state[_READY]] = rank
        self._state[_READY] += 1

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Free cores go to the ranks that are ready when the lock is given back."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
            count = self._state[_READY]
            begin = min(count, self._state[_FREE])
            ranks = self._state[_HEAD : _HEAD + count].tolist()
            self._state[_FREE] -= begin
            self._state[_READY] -= begin
            for place, rank in enumerate(ranks[begin:]):
                self._state[_HEAD + place] = rank
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        for rank in ranks[:begin]:
            os.write(self._pipes[rank], b".")

    def _sleep(self) -> None:
        os.read(self._pipes[self._rank], 1)
