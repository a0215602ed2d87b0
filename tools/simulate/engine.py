"""Replays schedules: ranks compute, their collectives meet, cores are shared."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from .events import Call, Event, Wait

__all__ = ["Group", "Replay", "replay"]

# What Linux gives a thread before another of the same kind has its core.
SLICE = 3e-3
_MAIN = "main"
_NOTHING = 1e-12
# What a thread needs a core for before others see that it has come.
_COMING = 2e-6


@dataclass(frozen=True)
class Group:
    """Ranks that call collectives together.

    Args:
        members: those that are replayed.
        size: how many there are in all; the others do what these do.
        span: how far apart neighbours are, for the network.
    """

    members: tuple[int, ...]
    size: int
    span: int = 1


@dataclass
class _Rank:
    events: deque
    speed: float
    done: set = field(default_factory=set)
    # Calls of which only this rank's own work is left: waiting for them is no sleep.
    coming: set = field(default_factory=set)
    waits: int | None = None
    waits_since: float = 0.0
    streams: dict[str, deque] = field(default_factory=dict)
    # Collectives of this rank that move bytes now.
    moving: int = 0
    ended: float | None = None
    computed: float = 0.0


@dataclass
class _Entry:
    """A call in its group's order; `since` is when its thread has come to it."""

    call: Call
    since: float | None = None
    begun: bool = False


@dataclass
class _Job:
    """Work of a thread; `then` is called at its end."""

    left: float
    rank: int
    thread: str
    then: Callable[[], None]
    slice: float = 0.0  # seconds until others may have the core


class Replay:
    """Ranks that run their schedules once.

    Args:
        schedules: by rank.
        groups: by the name that calls have.
        costs: a `Network` or a `Host`.
        cores: that all threads share; None for one of its own for each. Who begins to
            wait gives its core to who has been ready for longest.
        slice: seconds after which a core goes to another thread that is ready.
        speeds: by rank, what its computing times are divided by; 1 where none is given.
    """

    def __init__(
        self,
        schedules: dict[int, list[Event]],
        groups: dict[str, Group],
        costs,
        cores: int | None = None,
        speeds: dict[int, float] | None = None,
        slice: float = SLICE,
    ) -> None:
        self._groups, self._costs, self._slice = groups, costs, slice
        self._cores = cores or 2 * len(schedules) * (len(groups) + 1)
        speeds = speeds or {}
        self._ranks = {
            r: _Rank(deque(events), speeds.get(r, 1.0))
            for r, events in schedules.items()
        }
        self._now = 0.0
        self._running: list[_Job] = []
        self._ready: deque[_Job] = deque()
        self._timers: list[tuple] = []
        self._order = itertools.count()
        self._mail: dict[tuple[int, int], deque] = {}
        self._asked: dict[tuple[int, int], deque] = {}
        self.exposed = 0.0  # seconds that the slowest rank did not compute

    def run(self) -> float:
        """Seconds until the last rank has ended.

        Raises:
            RuntimeError: ranks wait for what never comes.
        """
        for rank in self._ranks:
            self._advance(rank)
        while self._running or self._ready or self._timers:
            self._step()
        stuck = [r for r, state in self._ranks.items() if state.ended is None]
        if stuck:
            raise RuntimeError(f"replay: the ranks {stuck[:8]} wait for ever")
        last = max(self._ranks.values(), key=lambda state: state.ended)
        self.exposed = last.ended - last.computed
        return last.ended

    # Time.

    def _rate(self, job: _Job) -> float:
        moving = self._ranks[job.rank].moving and job.thread == _MAIN
        return 1.0 - self._costs.interference if moving else 1.0

    def _step(self) -> None:
        """Goes to the next end of a job, a slice or a time."""
        while self._ready and len(self._running) < self._cores:
            self._running.append(self._ready.popleft())
        ends = [job.left / self._rate(job) for job in self._running]
        if self._ready:
            ends += [job.slice for job in self._running]
        if self._timers:
            ends.append(self._timers[0][0] - self._now)
        passed = max(0.0, min(ends))
        self._now += passed
        rates = [self._rate(job) for job in self._running]
        for job, rate in zip(self._running, rates, strict=True):
            job.left -= passed * rate
            job.slice -= passed
        for job in [job for job in self._running if job.left <= _NOTHING]:
            self._end_job(job)
        for job in [job for job in self._running if job.slice <= _NOTHING]:
            job.slice = self._slice
            if self._ready:
                self._running.remove(job)
                self._ready.append(job)
        while self._timers and self._timers[0][0] <= self._now + _NOTHING:
            heapq.heappop(self._timers)[2]()

    def _end_job(self, job: _Job) -> None:
        """A thread that goes on keeps its core; else the next has it."""
        self._running.remove(job)
        before = len(self._ready)
        job.then()
        for fresh in list(self._ready)[before:]:
            if (fresh.rank, fresh.thread) == (job.rank, job.thread):
                self._ready.remove(fresh)
                fresh.slice = max(job.slice, 0.0)
                self._running.append(fresh)
                return

    def _work(self, rank: int, thread: str, seconds: float, then) -> None:
        if seconds <= 0.0:
            self._after(0.0, then)
        else:
            self._ready.append(_Job(seconds, rank, thread, then, self._slice))

    def _after(self, seconds: float, then) -> None:
        heapq.heappush(self._timers, (self._now + seconds, next(self._order), then))

    # Ranks.

    def _advance(self, rank: int) -> None:
        """Goes on with a rank's events until one takes time."""
        state = self._ranks[rank]
        while state.events:
            event = state.events.popleft()
            if isinstance(event, Call):
                self._call(rank, event)
            elif isinstance(event, Wait):
                if self._waits(rank, event.number):
                    return
            elif event.seconds > 0.0:
                seconds = event.seconds / state.speed
                state.computed += seconds
                self._work(rank, _MAIN, seconds, lambda: self._advance(rank))
                return
        if state.ended is None:
            state.ended = self._now

    def _waits(self, rank: int, number: int) -> bool:
        """Whether a rank stands still until a call has ended."""
        state = self._ranks[rank]
        if number in state.done:
            return False
        state.waits, state.waits_since = number, self._now
        if self._costs.block and number not in state.coming:
            self._work(rank, _MAIN, self._costs.block, lambda: None)
        return True

    def _finish(self, rank: int, number: int, *, later: bool = True) -> None:
        state = self._ranks[rank]
        state.done.add(number)
        if state.waits == number:
            state.waits = None
            # Who runs a collective itself is awake at its end.
            since = state.waits_since if later else self._now
            self._wake(since, lambda: self._advance(rank))

    def _wake(self, since: float, then) -> None:
        """Goes on with who has waited since then, asleep or not."""
        asleep = self._now - since > self._costs.spin
        if asleep:
            self._after(self._costs.wake, then)
        else:
            then()

    # Collectives: those of a group run in order, each when all members have come.

    def _call(self, rank: int, call: Call) -> None:
        if call.kind in ("send", "recv"):
            self._message(rank, call)
            return
        entry = _Entry(call)
        self._ranks[rank].streams.setdefault(call.group, deque()).append(entry)

        def arrive() -> None:
            entry.since = self._now
            self._try(call.group)

        # A thread of its own is asleep until it is told, and needs a core to come.
        wake = self._costs.wake
        if call.later and wake:
            self._after(wake, lambda: self._work(rank, call.group, _COMING, arrive))
        else:
            arrive()

    def _try(self, name: str) -> None:
        group = self._groups[name]
        entries = []
        for member in group.members:
            stream = self._ranks[member].streams.get(name)
            if not stream or stream[0].since is None or stream[0].begun:
                return
            entries.append(stream[0])
        for entry in entries:
            entry.begun = True
        heads = [entry.call for entry in entries]
        call = heads[0]
        cost = self._costs.cost(call.kind, group.size, call.bytes, group.span)
        left = len(group.members)

        def ended() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._end(name, group, heads)

        def begin() -> None:
            for member, call in zip(group.members, heads, strict=True):
                thread = name if call.later else _MAIN
                self._work(member, thread, cost.work, ended)

        for member in group.members:
            self._ranks[member].moving += 1
        first = min(entry.since for entry in entries)
        self._wake(first, lambda: self._after(cost.seconds, begin))

    def _end(self, name: str, group: Group, heads: list[Call]) -> None:
        for member in group.members:
            self._ranks[member].moving -= 1
            stream = self._ranks[member].streams[name]
            stream.popleft()
            if stream and stream[0].since is not None:
                stream[0].since = self._now
        for member, call in zip(group.members, heads, strict=True):
            self._finish(member, call.number, later=call.later)
        self._try(name)

    # Messages: of two ranks in order; who sends does not wait for who receives.

    def _message(self, rank: int, call: Call) -> None:
        if call.kind == "send":
            cost = self._costs.message(call.bytes, abs(rank - call.peer))

            def arrive() -> None:
                self._finish(rank, call.number)
                self._mail.setdefault((rank, call.peer), deque()).append(cost)
                self._deliver(rank, call.peer)

            self._work(
                rank, "sent", cost.work, lambda: self._after(cost.seconds, arrive)
            )
            return
        self._asked.setdefault((call.peer, rank), deque()).append(call)
        self._deliver(call.peer, rank)

    def _deliver(self, source: int, rank: int) -> None:
        mail = self._mail.get((source, rank))
        asked = self._asked.get((source, rank))
        while mail and asked:
            cost, call = mail.popleft(), asked.popleft()
            self._ranks[rank].coming.add(call.number)
            self._work(
                rank,
                _MAIN,
                cost.work,
                lambda number=call.number: self._finish(rank, number),
            )


def replay(schedules, groups, costs, cores=None, **options) -> float:
    """Seconds of a step; arguments as of `Replay`."""
    return Replay(schedules, groups, costs, cores, **options).run()
