"""Measurements as tables."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from .common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """Among which times the best are marked."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


@dataclass
class _Style:
    trim: bool = False
    colorize: Colorize = Colorize.NONE
    warn: bool = False


class _Column:
    """How numbers of a column are written: all with the same number of decimals."""

    def __init__(self, results: list[Measurement], scale: float, style: _Style) -> None:
        self.style = style
        self.scale = scale
        leading = [math.ceil(math.log10(r.median / scale)) for r in results]
        decimals = 1
        if style.trim:
            figures = [r.significant_figures for r in results]
            pairs = zip(figures, leading, strict=True)
            decimals = min(max(n - digits, 0) for n, digits in pairs)
        self.decimals = decimals
        self.width = max(leading) + decimals + (decimals > 0)
        self.warn = style.warn and any(r.has_warnings for r in results)

    def text(self, result: Measurement | None) -> str:
        note = 7 if self.warn else 0
        if result is None:
            return " " * (max(self.width, len(f"{1:.{self.decimals}f}")) + note)
        value = result.median / self.scale
        if self.style.trim:
            value = trim_sigfig(value, result.significant_figures)
        spread = ""
        if self.warn and result.has_warnings:
            spread = f" (! {result.iqr / result.median * 100:.0f}%)"
        return f"{value:>{self.width}.{self.decimals}f}{spread:>{note}}"


# Limits of a time over the best one, and how it is written; of several the first.
_FAST = ((1.01, _BEST + _BOLD), (1.1, _GOOD + _BOLD))
_SLOW = ((5, _VERY_BAD + _BOLD), (2, _BAD))
_SAME = 100e-9  # seconds by which times are taken as equal


def _colored(text: str, value: float, best: float) -> str:
    marks = [mark for least, mark in _SLOW if value >= best * least]
    marks[:0] = [mark for most, mark in _FAST if value <= best * most]
    if value <= best + _SAME:
        marks.insert(0, _FAST[0][1])
    return marks[0] + text + _END * 2 if marks else text


class _Table:
    """The results of one label: rows by threads, environment and name; columns by
    description."""

    def __init__(self, results: list[Measurement], style: _Style) -> None:
        self.results = results
        self.style = style
        self.unit, scale = select_unit(min(r.median for r in results))
        keys = ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results)
        self.rows = sorted(keys, key=lambda key: key[:2])
        self.names = ordered_unique(r.description for r in results)
        self.cells = {
            ((r.num_threads, r.env, r.as_row_name), r.description): r for r in results
        }
        self.columns = [
            _Column([r for r in results if r.description == name], scale, style)
            for name in self.names
        ]

    def render(self) -> str:
        heads = self._row_heads()
        texts = [
            [
                column.text(self.cells.get((row, name)))
                for name, column in zip(self.names, self.columns, strict=True)
            ]
            for row in self.rows
        ]
        first = max(map(len, heads))
        titles = [name or "" for name in self.names]
        widths = [
            max(len(title), *(len(text[i]) for text in texts))
            for i, title in enumerate(titles)
        ]
        joined = "  |  ".join(
            [" " * first, *(t.center(w) for t, w in zip(titles, widths, strict=True))]
        )
        lines, threads = [joined], None
        for row, head, text in zip(self.rows, heads, texts, strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(joined), "-"))
            cells = self._cells_of(row, text, widths)
            lines.append("  |  ".join([head.ljust(first), *cells]))
        return self._framed(lines, len(joined))

    def _row_heads(self) -> list[str]:
        envs = {r.env for r in self.results}
        width = max(map(len, envs)) + 4 if len(envs) > 1 else 4
        heads, before = [], None
        for threads, env, name in self.rows:
            shown = len(envs) > 1 and (threads, env) != before
            heads.append("  " + (f"({env})" if shown else "").ljust(width) + name)
            before = (threads, env)
        return heads

    def _cells_of(self, row, texts: list[str], widths: list[int]) -> list[str]:
        found = [self.cells.get((row, name)) for name in self.names]
        cells = []
        for i, (text, result) in enumerate(zip(texts, found, strict=True)):
            text = text.center(widths[i])
            if result is not None and self.style.colorize is not Colorize.NONE:
                text = _colored(text, result.median, self._best(row, i, found))
            cells.append(text)
        return cells

    def _best(self, row, column: int, found: list[Measurement | None]) -> float:
        if self.style.colorize is Colorize.COLUMNWISE:
            name = self.names[column]
            same = [r for r in self.rows if r[0] == row[0]]
            found = [self.cells.get((r, name)) for r in same]
        return min(r.median for r in found if r is not None)

    def _framed(self, lines: list[str], width: int) -> str:
        label = f" {self.results[0].label or ''} "
        note = ""
        if self.style.warn and any(r.has_warnings for r in self.results):
            note = (
                "(! XX%) Measurement has high variance, where XX is the "
                "IQR / median * 100.\n"
            )
        unit = f"Times are in {unit_to_english(self.unit)}s ({self.unit})."
        return "\n".join([f"[{label.center(width - 2, '-')}]", *lines, "", unit, note])


class Compare:
    """Tables of measurements, one for each label; `str` gives the text.

    Args:
        results: Measurements; those of the same task count as one.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._style = _Style()
        self.extend_results(results)

    def __str__(self) -> str:
        grouped: dict[str | None, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            grouped.setdefault(result.label, []).append(result)
        return "\n".join(_Table(r, self._style).render() for r in grouped.values())

    def extend_results(self, results) -> None:
        """Adds more.

        Raises:
            ValueError: one is no Measurement.
        """
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    "Expected an instance of `Measurement`, "
                    f"got {type(result)} instead."
                )
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows no more figures than are likely right."""
        self._style.trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Marks the best and the worst by colours, in each column or in each row."""
        self._style.colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Shows where times vary much."""
        self._style.warn = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))
