"""What all workers do together: gathering objects, and leaving."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from typing import Any

from ._call import CallFuture
from ._references import Later

__all__ = ["all_gather", "leave"]

# A leader gives up first, so that it can tell whom it missed.
_LEADER_SECONDS = 2.0
# For how long the leader stays for others to say goodbye.
_GOODBYE_SECONDS = 3.0


class _Gathering:
    """At the leader: objects that came, and the future of all of them."""

    def __init__(self, names: tuple[str, ...], pool) -> None:
        self.missing = set(names)
        self.objects: dict[str, Any] = {}
        self.all = CallFuture(pool)


class Gatherings:
    """Those of one agent: as their leader, and how many this worker took part in."""

    def __init__(self, agent) -> None:
        self._agent = agent
        # Guards the dictionaries.
        self._lock = threading.Lock()
        self._open: dict[tuple, _Gathering] = {}
        self._counts: defaultdict[tuple, itertools.count] = defaultdict(itertools.count)
        agent.watch(self._fail_lost)

    def next_key(self, names: tuple[str, ...]) -> tuple:
        with self._lock:
            return names, next(self._counts[names])

    def arrive(self, key: tuple, name: str, value, seconds: float) -> CallFuture:
        with self._lock:
            first = key not in self._open
            if first:
                self._open[key] = _Gathering(key[0], self._agent.pool)
            gathering = self._open[key]
            if name not in gathering.missing:
                raise RuntimeError(f"{name} came twice, or is not one of {key[0]}")
            gathering.missing.discard(name)
            gathering.objects[name] = value
            complete = not gathering.missing
            if complete:
                del self._open[key]
        if complete:
            gathering.all.set_result(gathering.objects)
        elif first and seconds:
            text = f"did not come within {seconds:g} s"
            timer = threading.Timer(seconds, self._fail, (key, text))
            timer.daemon = True
            timer.start()
        self._fail_lost()
        return gathering.all

    def _fail(self, key: tuple, text: str, only: set[str] | None = None) -> None:
        with self._lock:
            gathering = self._open.get(key)
            if gathering is None:
                return
            missing = sorted(gathering.missing if only is None else only)
            del self._open[key]
        gathering.all.set_exception(RuntimeError(f"RPC: workers {missing} {text}"))

    def _fail_lost(self) -> None:
        """Ends gatherings whose missing workers have died."""
        find = self._agent.directory.find
        lost = {find(worker).name for worker in list(self._agent.lost)}
        with self._lock:
            hit = [(k, g.missing & lost) for k, g in self._open.items()]
        for key, dead in hit:
            if dead:
                self._fail(key, "were lost", dead)


def _gather(key: tuple, name: str, value, seconds: float) -> Later:
    from . import api

    return Later(api._agent().gatherings.arrive(key, name, value, seconds))


def all_gather(agent, value, names, seconds: float) -> dict:
    """Every worker's value: name -> value.

    Args:
        value: of this worker.
        names: of the workers that take part; the first in order leads.
        seconds: 0 for no limit.

    Raises:
        RuntimeError: workers that are missing are named.
    """
    names = tuple(sorted(names))
    key = agent.gatherings.next_key(names)
    leader = agent.directory.find(names[0])
    args = (key, agent.worker.name, value, seconds)
    limit = seconds + _LEADER_SECONDS if seconds else 0
    future = agent.call(
        leader, _gather, args, timeout=limit, record=False, counted=False
    )
    return future.wait()


def leave(agent, deadline: float) -> None:
    """Waits until no worker has calls under way, and ends all references.

    All workers tell how many calls they have sent, each when it waits for none. Once
    two rounds tell the same, there was a moment between them without any call.

    Raises:
        RuntimeError: workers that are missing are named.
    """
    names = agent.directory.names()
    before, issued = None, {}
    try:
        while issued != before:
            before = issued
            agent.wait_for_calls(deadline)
            issued = all_gather(agent, agent.counts()[1], names, _left(deadline))
        agent.references.end_all()
        agent.wait_for_calls(deadline)
        all_gather(agent, None, names, _left(deadline))
    finally:
        # Others are still to hear from the leader, of a failure too.
        end = time.monotonic() + _GOODBYE_SECONDS
        leads = agent.worker.name == min(names)
        while leads and time.monotonic() < end and not agent.all_left():
            time.sleep(0.001)


def _left(deadline: float) -> float:
    if deadline == float("inf"):
        return 0
    return max(0.001, deadline - time.monotonic())
