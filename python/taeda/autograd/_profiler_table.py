"""Profiles as text: columns as wide as PyTorch's, whose tables tools parse."""

from __future__ import annotations

import math
from typing import NamedTuple

from taeda.autograd.profiler_util import (
    _format_memory,
    _format_time,
    _format_time_share,
)

_WIDTH = 12  # of a number's column
_GAP = "  "
_TIMES = {"s": 1e6, "ms": 1e3, "us": 1.0}
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


class Column(NamedTuple):
    """A title, a width, and the text of an event; `lines` has one for each frame."""

    title: str
    width: int
    cell: object
    left: bool = False

    def fit(self, text: str) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _cut(text: str, width: int | None) -> str:
    if width is None or len(text) < width - 3:
        return text
    return text[: width - 3] + "..."


def _cut_front(path: str, width: int) -> str:
    return path if len(path) <= width else ("..." + path[3 - width :])[-width:]


def _column_width(texts, most: int | None) -> int:
    widest = max(map(len, texts)) + 4
    return widest if most is None else min(widest, most)


class Table:
    """Columns over events (`FunctionEvent` or `FunctionEventAvg`).

    Args:
        events: one for each row.
        widths: of names, of shapes and of places at most; None for no limit.
        time_unit: of all times, or None.
    """

    def __init__(self, events, widths, time_unit: str | None) -> None:
        self.events = list(events)
        self.name_width, self.shapes_width, self.place_width = widths
        self.time_unit = time_unit
        self.total = sum(event.self_cpu_time_total for event in self.events)
        self.columns: list[Column] = []
        self.stacks = False
        if self.events:
            self._add_names()
            self._add_times()

    def _add_names(self) -> None:
        width = _column_width((e.key for e in self.events), self.name_width)
        self._add("Name", lambda e: _cut(e.key, self.name_width), width)
        if any(e.overload_name for e in self.events):
            cell = lambda e: _cut(e.overload_name, self.name_width)
            self._add("Overload Name", cell, width)

    def _add(self, title, cell, width=_WIDTH, left=False) -> None:
        self.columns.append(Column(title, width, cell, left))

    def _time(self, us: float) -> str:
        if self.time_unit in _TIMES:
            return f"{us / _TIMES[self.time_unit]:.3f}{self.time_unit}"
        return _format_time(us)

    def _share(self, us: float, event) -> str:
        return "0" if event.is_async else _format_time_share(us, self.total)

    def _add_times(self) -> None:
        own, whole = "self_cpu_time_total", "cpu_time_total"
        self._add(
            "Self CPU %", lambda e: _format_time_share(getattr(e, own), self.total)
        )
        self._add("Self CPU", lambda e: self._time(getattr(e, own)))
        self._add("CPU total %", lambda e: self._share(getattr(e, whole), e))
        self._add("CPU total", lambda e: self._time(getattr(e, whole)))
        self._add("CPU time avg", lambda e: self._time(e.cpu_time))

    def add_memory(self) -> None:
        """Bytes, with and without the events inside."""
        self._add("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage))
        self._add("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage))

    def add_counts(self) -> None:
        """How many events."""
        self._add("# of Calls", lambda e: str(e.count))

    def add_shapes(self) -> None:
        """Shapes of arguments, where an event has some."""
        if not any(event.input_shapes for event in self.events):
            return
        texts = (str(event.input_shapes) for event in self.events)
        width = _column_width(texts, self.shapes_width)
        self._add("Input Shapes", lambda e: str(e.input_shapes)[:width], width)

    def add_flops(self) -> None:
        """Floating-point operations in the unit that suits the fewest."""
        counts = [event.flops for event in self.events if event.flops]
        if not counts:
            return
        power = min(max(int(math.log10(min(counts)) / 3), 0), len(_FLOPS) - 1)
        scale = 1000.0**-power

        def cell(event):
            return f"{event.flops * scale:8.3f}" if event.flops else "--"

        self._add(f"Total {_FLOPS[power]}", cell)

    def add_stacks(self) -> None:
        """Places, a line each, where an event has some."""
        entries = [place for event in self.events for place in event.stack or ()]
        if not entries:
            return
        self.stacks = True
        width = _column_width(entries, self.place_width)
        self._add(
            "Source Location", lambda e: e.stack[0] if e.stack else "", width, True
        )

    def _line(self, cells) -> str:
        texts = (
            column.fit(cell) for column, cell in zip(self.columns, cells, strict=True)
        )
        return "".join(text + _GAP for text in texts) + "\n"

    def _rows(self, event):
        place = self.columns[-1]
        cells = [column.cell(event) for column in self.columns]
        if not self.stacks:
            yield self._line(cells)
            return
        blank = [""] * (len(cells) - 1)
        cells[-1] = _cut_front(cells[-1], place.width)
        yield self._line(cells)
        for entry in [*(event.stack or ())][1:]:
            yield self._line([*blank, _cut_front(entry, place.width)])
        yield self._line([*blank, ""])

    def text(self, row_limit: int, header: str | None, top_level_only: bool) -> str:
        """The table; nothing without events."""
        if not self.events:
            return ""
        rule = self._line(["-" * column.width for column in self.columns])
        double = "=" * (sum(c.width + len(_GAP) for c in self.columns) - len(_GAP))
        out = []
        if header is not None:
            out += [double, "\n", header, "\n"]
        if top_level_only:
            out += [double, "\nThis report only display top-level ops statistics\n"]
        out += [rule, self._line([column.title for column in self.columns]), rule]
        shown = [e for e in self.events if not (top_level_only and e.cpu_parent)]
        for event in shown if row_limit < 0 else shown[:row_limit]:
            out += self._rows(event)
        out += [rule, f"Self CPU time total: {self._time(self.total)}\n"]
        return "".join(out)
