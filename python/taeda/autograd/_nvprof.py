"""Reading what `nvprof` has recorded of a program that marked its operators."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from taeda.autograd.profiler_util import EventList, FunctionEvent

__all__ = ["load_nvprof", "parse_nvprof_trace"]

_LAUNCH = 211  # the runtime's number of cudaLaunchKernel


def load_nvprof(path: str) -> EventList:
    """The events of a file that `nvprof --export-profile` wrote.

    Args:
        path: an SQLite database.

    Raises:
        sqlite3.OperationalError: it has not nvprof's tables.
    """
    return EventList(parse_nvprof_trace(path))


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """The same as a list: a marked range is an event, whose kernels are those that were
    launched inside of it. Times are as the file has them."""
    with closing(sqlite3.connect(path)) as file:
        names = dict(file.execute("SELECT _id_, value FROM StringTable"))
        events = _ranges(file, names)
        _add_kernels(file, names, events)
    return events


def _ranges(file, names: dict[int, str]) -> list[FunctionEvent]:
    """Beginnings have a name, ends have none; both have the range's number."""
    marks = file.execute(
        "SELECT id, name, timestamp FROM CUPTI_ACTIVITY_KIND_MARKER ORDER BY timestamp"
    )
    ends: dict[int, int] = {}
    begun: list[tuple[int, int, int]] = []
    for number, name, time in marks:
        if name:
            begun.append((number, name, time))
        else:
            ends[number] = time
    return [
        FunctionEvent(number, names[name], 0, time, ends[number], node_id=0)
        for number, name, time in begun
        if number in ends
    ]


def _add_kernels(file, names: dict[int, str], events: list[FunctionEvent]) -> None:
    launches = dict(
        file.execute(
            "SELECT correlationId, start FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE cbid=?",
            (_LAUNCH,),
        )
    )
    kernels = file.execute(
        "SELECT correlationId, name, start, end FROM"
        " CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"
    )
    for launch, name, start, end in kernels:
        at = launches.get(launch)
        for event in events:
            span = event.time_range
            if at is not None and span.start <= at <= span.end:
                event.append_kernel(names.get(name, name), 0, end - start)
