"""The schedule of one rank: what it computes, calls and waits for, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

__all__ = [
    "Call",
    "Compute",
    "Event",
    "Wait",
    "from_record",
    "load",
    "middle",
    "repeated",
    "save",
    "scaled",
    "total",
    "typical",
]


@dataclass(frozen=True)
class Compute:
    """Seconds of the rank's own work, on a core or an accelerator for itself."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """A collective or message that begins; the rank goes on.

    Args:
        kind: "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all",
            "barrier", "send", "recv" and others.
        number: by which a `Wait` finds it.
        bytes: of the whole, as `taeda.distributed._fake.FakeCall` counts them.
        group: the name of the ranks that take part.
        peer: the other rank of a message.
        later: whether a thread of its own runs it, while the rank goes on.
    """

    kind: str
    number: int
    bytes: int
    group: str = "0"
    peer: int = -1
    later: bool = True


@dataclass(frozen=True)
class Wait:
    """The rank goes on when the call of this number has ended."""

    number: int


Event = Compute | Call | Wait
_KINDS = {kind.__name__: kind for kind in (Compute, Call, Wait)}


def from_record(
    calls: Iterable, begin: float, end: float, names: dict[str, str] | None = None
) -> list[Event]:
    """The schedule of a step that ran over the fake backend.

    Args:
        calls: of a `FakeRecord`.
        begin: when the step began, in seconds of `time.perf_counter`.
        end: when it ended.
        names: what groups are called, by the names that they have.
    """
    names = names or {}
    events: list[Event] = []
    for call in sorted(calls, key=lambda c: c.begin):
        events.append(Compute(max(0.0, call.begin - begin)))
        begin = call.end
        if call.kind == "wait":
            events.append(Wait(call.number))
        else:
            group = names.get(call.group, call.group)
            what = call.kind, call.number, call.bytes, group
            events.append(Call(*what, call.peer, call.later))
    return [*events, Compute(max(0.0, end - begin))]


def middle(schedules: list[list[Event]]) -> list[Event]:
    """One schedule of several runs of a step: medians of what each part took.

    Raises:
        ValueError: the runs called different things.
    """
    shapes = [[type(e) for e in events] for events in schedules]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("middle: the steps have different calls")
    found: list[Event] = []
    for events in zip(*schedules, strict=True):
        if isinstance(events[0], Compute):
            times = sorted(e.seconds for e in events)
            found.append(Compute(times[len(times) // 2]))
        else:
            found.append(events[0])  # calls and waits have the first run's numbers
    return found


def repeated(events: list[Event], times: int) -> list[Event]:
    """So many steps, one after the other; their calls have numbers of their own."""
    period = 1 + max(
        (e.number for e in events if not isinstance(e, Compute)), default=0
    )
    return [
        e if isinstance(e, Compute) else replace(e, number=e.number + period * turn)
        for turn in range(times)
        for e in events
    ]


def typical(schedules: list[list[Event]]) -> list[Event]:
    """The run that was faster than three of four: others took cores from those."""
    return sorted(schedules, key=total)[len(schedules) // 4]


def scaled(
    events: list[Event],
    seconds: float = 1.0,
    count: Callable[[Call], float] = lambda call: 1.0,
) -> list[Event]:
    """The same schedule of a larger model on another machine.

    Args:
        seconds: what times are multiplied by.
        count: what a call's bytes are multiplied by.
    """
    return [
        Compute(e.seconds * seconds)
        if isinstance(e, Compute)
        else replace(e, bytes=round(e.bytes * count(e)))
        if isinstance(e, Call)
        else e
        for e in events
    ]


def total(events: list[Event]) -> float:
    """Seconds that a rank computes."""
    return sum(e.seconds for e in events if isinstance(e, Compute))


def save(events: list[Event], path: Path) -> None:
    """Writes a schedule as JSON."""
    rows = [[type(e).__name__, asdict(e)] for e in events]
    path.write_text(json.dumps(rows))


def load(path: Path) -> list[Event]:
    """Reads what `save` wrote.

    Raises:
        ValueError: an entry of another kind.
    """
    events = []
    for name, fields in json.loads(path.read_text()):
        if name not in _KINDS:
            raise ValueError(f"{path}: expected one of {[*_KINDS]}, got {name!r}")
        events.append(_KINDS[name](**fields))
    return events
