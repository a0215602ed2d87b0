"""The threads of an agent: those that run calls, and a clock."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Clock", "Pool", "lent", "may_wait", "must_not_wait", "thread"]

# Threads beyond its size that a pool keeps after they stood in for others.
_SPARE = 8
# What the running thread is: a pool's (`pool`), or one that must not wait.
_this = threading.local()


def thread(run: Callable[[], Any], name: str) -> threading.Thread:
    """Starts a thread that does not keep the process alive."""
    started = threading.Thread(target=run, name=name, daemon=True)
    started.start()
    return started


def must_not_wait() -> None:
    """Marks the running thread; Note [Who may wait]."""
    _this.may_not = True


def may_wait() -> bool:
    """Whether the running thread may wait and run a program's functions."""
    return not getattr(_this, "may_not", False)


@contextlib.contextmanager
def lent() -> Iterator[None]:
    """While a thread of a pool waits, the pool may run another in its place."""
    pool = getattr(_this, "pool", None)
    if pool is None:
        yield
        return
    pool.lend()
    try:
        yield
    finally:
        pool.take_back()


class Pool:
    """Threads that run calls: at most `size` that do not wait for other calls.

    Chains of calls that wait for each other thus cannot use up the threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: queue.SimpleQueue = queue.SimpleQueue()
        # Guards the counts below.
        self._lock = threading.Lock()
        self._threads = self._idle = self._lent = self._running = self._waiting = 0
        self._closed = False

    def submit(self, function: Callable, *args) -> None:
        """Runs a function in a thread of the pool."""
        with self._lock:
            if self._closed:
                return
            self._running += 1
            self._waiting += 1
            self._work.put((function, args))
            self._grow()

    def _grow(self) -> None:
        """One more thread where work waits and the limit allows; locked."""
        if self._idle >= self._waiting:
            return
        if self._threads - self._lent < self._size:
            self._threads += 1
            self._idle += 1
            thread(self._run, f"rpc-call-{self._threads}")

    def lend(self) -> None:
        with self._lock:
            self._lent += 1
            self._grow()

    def take_back(self) -> None:
        with self._lock:
            self._lent -= 1

    def _run(self) -> None:
        _this.pool = self
        while (work := self._work.get()) is not None:
            with self._lock:
                self._idle -= 1
                self._waiting -= 1
            function, args = work
            try:
                function(*args)
            except Exception:
                traceback.print_exc()
            del work, function, args
            with self._lock:
                self._running -= 1
                self._idle += 1
                if self._threads - self._lent > self._size + _SPARE:
                    break
        with self._lock:
            self._threads -= 1
            self._idle -= 1

    def counts(self) -> tuple[int, int, int]:
        """Threads, idle threads, calls that run or wait."""
        with self._lock:
            return self._threads, self._idle, self._running

    def close(self) -> None:
        """Ends the threads that have nothing to do; others end after their call."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):
                self._work.put(None)


class Clock:
    """A thread that calls `expire` when the earliest deadline has come.

    It also runs what is left to it by `later`, which may be called anywhere, finalizers
    included: a SimpleQueue's `put` may interrupt itself.

    Args:
        expire: called with the time; returns the next deadline or None.
    """

    def __init__(self, expire: Callable[[float], float | None]) -> None:
        self._expire = expire
        self._work: queue.SimpleQueue = queue.SimpleQueue()
        # Only made earlier by others than the clock; a late wake costs one look.
        self._wake = 0.0
        self._thread = thread(self._run, "rpc-clock")

    def later(self, function: Callable[[], None]) -> None:
        self._work.put(function)

    def expect(self, deadline: float) -> None:
        """Wakes at this time at the latest."""
        if deadline < self._wake:
            self._work.put(_look)

    def close(self) -> None:
        self._work.put(None)

    def _run(self) -> None:
        must_not_wait()
        while True:
            now = time.monotonic()
            # Whoever registers a deadline meanwhile finds it earlier than this.
            self._wake = float("inf")
            following = self._expire(now)
            self._wake = following if following is not None else now + 3600.0
            try:
                work = self._work.get(timeout=max(0.0, self._wake - now))
            except queue.Empty:
                continue
            if work is None:
                return
            with contextlib.suppress(Exception):
                work()


def _look() -> None:
    """Nothing: the clock looks at its deadlines after each piece of work."""
