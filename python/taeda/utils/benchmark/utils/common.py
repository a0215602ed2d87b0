"""What was measured, and of what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit"]
__all__ += ["set_torch_threads", "trim_sigfig", "unit_to_english"]

_UNITS = {
    "ns": (1e-9, "nanosecond"),
    "us": (1e-6, "microsecond"),
    "ms": (1e-3, "millisecond"),
    "s": (1, "second"),
}
_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds; below it the clock decides
_FLUCTUATION = 0.1  # of interquartile range over median
_CAUSES = (
    (_FLUCTUATION, "This could indicate system fluctuation."),
    (0.25, "This suggests significant environmental influence."),
)


@dataclass(frozen=True, repr=False)
class TaskSpec:
    """A statement and what it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""  # C++, outside of the function
    label: str | None = None  # a table's title
    sub_label: str | None = None  # a row's name
    description: str | None = None  # a column's name
    env: str | None = None  # where it ran
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the sub-label."""
        if self.label is None and "\n" in self.stmt:
            head = f"stmt: ({self.sub_label})" if self.sub_label else "stmt:"
            return f"{head}\n{_indented(self.stmt)}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """The setup as it is shown; "" where there is none."""
        if self.setup in ("", "pass"):
            return ""
        block = "\n" in self.setup
        return "setup:" + (f"\n{_indented(self.setup)}" if block else f" {self.setup}")

    def summarize(self) -> str:
        """Title, description and setup, a line each or a paragraph."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(p + "\n" if "\n" in p else p for p in parts if p)


_SPEC_FIELDS = frozenset(f.name for f in fields(TaskSpec))


def _indented(text: str) -> str:
    import textwrap

    return textwrap.indent(text, "  ")


def _quantile(ordered: tuple[float, ...], q: float) -> float:
    """Linear between the neighbours, as `taeda.quantile`."""
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(repr=False)
class Measurement:
    """Times of a statement.

    Args:
        number_per_run: how often the statement ran for each time.
        raw_times: seconds of all those runs together.
        task_spec: what ran.
        metadata: the caller's own.

    Fields of the TaskSpec are attributes of this too. Statistics are of the times of
    one run, in seconds.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str):
        if name in _SPEC_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    @property
    def times(self) -> list[float]:
        """Seconds of one run, of each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    def _ordered(self) -> tuple[float, ...]:
        return tuple(sorted(self.times))

    @property
    def median(self) -> float:
        """The median of `times` in seconds."""
        return _quantile(self._ordered(), 0.5)

    @property
    def mean(self) -> float:
        """The mean of `times` in seconds."""
        return math.fsum(self.times) / len(self.raw_times)

    def _quartiles(self) -> tuple[float, float]:
        ordered = self._ordered()
        return _quantile(ordered, 0.25), _quantile(ordered, 0.75)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many leading figures of the median are likely right, 1 to 4: by a 90 %
        confidence interval of the mean of the middle half, taken as normal."""
        import statistics

        ordered = self._ordered()
        n = len(ordered)
        middle = ordered[n // 4 : math.ceil(3 * n / 4)]
        interval = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        relative = self.median / max(interval, _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(relative)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _FLUCTUATION) -> bool:
        """Whether the interquartile range is less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary so much that they say little."""
        return bool(self._warning())

    def _warning(self) -> str:
        if not self.raw_times:
            return ""
        share = self.iqr / self.median
        causes = [text for least, text in _CAUSES if share >= least]
        if not causes:
            return ""
        return (
            f"  WARNING: Interquartile range is {share:.1%} of the median measurement."
            f"\n           {causes[-1]}"
        )

    @property
    def title(self) -> str:
        """The title of what was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it ran, as its maker named it."""
        given = self.task_spec.env
        return "Unspecified env" if given is None else given

    @property
    def as_row_name(self) -> str:
        """What its row is called in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def _figures(self) -> Iterator[str]:
        """The lines of the median and, from four times on, of the quartiles."""
        unit, scale = select_unit(self.median)
        low, middle, high = (
            f"{_quantile(self._ordered(), q) / scale:.2f}" for q in (0.25, 0.5, 0.75)
        )
        count = len(self.raw_times)
        yield f"  {'Median: ' if count > 1 else ''}{middle} {unit}"
        if count >= 4:
            yield f"  IQR:    {self.iqr / scale:.2f} {unit} ({low} to {high})"

    def __repr__(self) -> str:
        count, threads = len(self.raw_times), self.num_threads
        taken = "measurement," if count == 1 else "measurements,"
        runs = "runs ," if count == 1 else "runs per measurement,"
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines += self._figures() if count else ()
        lines.append(
            f"  {count} {taken} {self.number_per_run} {runs} {threads} "
            + ("thread" if threads == 1 else "threads")
        )
        return "\n".join([*lines, self._warning()]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement, of single runs, for each TaskSpec."""
        grouped: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            grouped.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, spec) for spec, times in grouped.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which so many seconds are a number from 1 to 1000, and its length;
    seconds for what is longer, or shorter than a nanosecond."""
    fitting = (unit for unit in reversed(_UNITS) if t >= _UNITS[unit][0])
    unit = next(fitting, "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """ "us" as "microsecond"."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n figures: 3.14159 and 2 give 3.1."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    return float(f"{x:.{int(n) - 1}e}")


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different elements, in the order in which they come first."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Operators use n threads in the block."""
    import taeda

    with ExitStack() as stack:
        stack.callback(taeda.set_num_threads, taeda.get_num_threads())
        taeda.set_num_threads(n)
        yield
