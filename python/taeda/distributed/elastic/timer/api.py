"""Timers of workers: clients ask for them, a server looks at them.

A client tells a server when a part of its program must have ended, and again when it
has. The server looks at fixed times and ends the workers that are late.
"""

from __future__ import annotations

import abc
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = [
    "RequestQueue",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]

logger = logging.getLogger(__name__)


class TimerRequest:
    """A timer that begins, or ends.

    Args:
        worker_id: who asks.
        scope_id: the part of its program.
        expiration_time: when it must have ended, of `time.time()`; negative when it
            has.
    """

    __slots__ = ("expiration_time", "scope_id", "worker_id")

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id = worker_id, scope_id
        self.expiration_time = expiration_time

    def __eq__(self, other) -> bool:
        if not isinstance(other, TimerRequest):
            return NotImplemented
        return all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __repr__(self) -> str:
        return (
            f"TimerRequest(worker_id={self.worker_id!r}, scope_id={self.scope_id!r}, "
            f"expiration_time={self.expiration_time!r})"
        )


class TimerClient(abc.ABC):
    """Asks a server for timers."""

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """A timer begins."""

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """It ends, in time."""


class RequestQueue(abc.ABC):
    """What clients told, until the server looks."""

    @abc.abstractmethod
    def size(self) -> int:
        """How many requests wait; others may come at once."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Up to `size` requests, those that come within `timeout` seconds."""


class TimerServer(abc.ABC):
    """Looks at timers every `max_interval` seconds and ends workers that are late.

    Args:
        request_queue: what clients told.
        max_interval: seconds.
        daemon: whether its thread lets the process end.
    """

    def __init__(
        self, request_queue: RequestQueue, max_interval: float, daemon: bool = True
    ) -> None:
        self._request_queue, self._max_interval = request_queue, max_interval
        self._daemon = daemon
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes what clients told."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forgets all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Timers that should have ended by a time, for each worker."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """Ends a worker; whether it has ended."""

    def _look(self) -> None:
        """Takes what was told and ends who is late."""
        count = max(1, self._request_queue.size())
        told = self._request_queue.get(count, self._max_interval)
        self.register_timers(told)
        ended = set()
        for worker, timers in self.get_expired_timers(time.time()).items():
            scopes = [timer.scope_id for timer in timers]
            logger.info("worker %s is ended, which is late in %s", worker, scopes)
            with contextlib.suppress(Exception):
                if self._reap_worker(worker):
                    ended.add(worker)
        self.clear_timers(ended)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
            except Exception:
                logger.exception("timers could not be looked at")
                self._stop.wait(self._max_interval)

    def start(self) -> None:
        """Begins to look, in a thread."""
        logger.info("%s starts", type(self).__name__)
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=self._daemon)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, at its next look at the latest."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self._max_interval)
            self._thread = None


# The client that `expires` asks where it is given none; set by `configure`.
_client: TimerClient | None = None


def configure(timer_client: TimerClient) -> None:
    """Says whom `expires` asks in this process."""
    global _client
    _client = timer_client


@contextlib.contextmanager
def expires(
    after: float, scope: str | None = None, client: TimerClient | None = None
) -> Iterator[None]:
    """A block that must end in some seconds, else the server ends this worker.

    Args:
        after: seconds.
        scope: the block's name; by default the calling file and line.
        client: asked for the timer; by default that of `configure`.

    Raises:
        RuntimeError: there is no client.

    Example::

        with timer.expires(after=60):
            dist.barrier()
    """
    asked = client or _client
    if asked is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = sys._getframe(2)
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    asked.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        asked.release(scope)
