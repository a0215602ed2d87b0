"""Taking measurements."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Seconds of a clock; work on an accelerator is waited for."""
    import taeda

    if taeda.accelerator.is_available():
        taeda.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What statements are written in."""

    PYTHON = 0
    CPP = 1


_LANGUAGES = {"py": Language.PYTHON, "python": Language.PYTHON}
_LANGUAGES |= {"c++": Language.CPP, "cpp": Language.CPP}
_MOST_RUNS = 2**31 - 1


def _dedented(text: str) -> str:
    text = textwrap.dedent(text)
    return text.removeprefix("\n").rstrip()


class Timer:
    """Times a statement, by default with one thread.

    Args:
        stmt: the statement.
        setup: what runs once before it.
        global_setup: in C++, what stands outside of functions.
        timer: a clock in seconds.
        globals: names for the statement, in Python.
        label, sub_label, description, env: what tables are made by (`Compare`):
            the table, its row, its column, a further row.
        num_threads: how many threads operators use meanwhile.
        language: Language.PYTHON, or Language.CPP (also "c++"): then the statement is
            compiled, with `<torch/extension.h>`.

    Raises:
        ValueError: an unknown language, `globals` or another clock in C++,
            `global_setup` in Python.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if not isinstance(language, Language):
            if str(language).lower() not in _LANGUAGES:
                raise ValueError(f"Invalid language `{language}`.")
            language = _LANGUAGES[str(language).lower()]
        self._language = language
        self._globals = dict(globals or {})
        stmt, setup = _dedented(stmt), _dedented(setup)
        if language is Language.CPP:
            self._timer = self._compiled(stmt, setup, global_setup, timer)
            setup = "" if setup == "pass" else setup
        else:
            if global_setup:
                raise ValueError(f"global_setup is C++ only, got `{global_setup}`.")
            from .callgrind import CopyIfCallgrind

            names = CopyIfCallgrind.unwrap_all(self._globals)
            self._timer = timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _compiled(self, stmt: str, setup: str, global_setup: str, clock):
        from .cpp_jit import CppTimer

        if self._globals:
            raise ValueError("Cannot pass globals to C++ snippets.")
        if clock is not timer:
            raise ValueError("C++ snippets have a clock of their own.")
        return CppTimer(stmt, "" if setup == "pass" else setup, global_setup)

    def _timeit(self, number: int) -> float:
        # No clock resolves a nanosecond, and ratios of times need a number above 0.
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One time of so many runs, after a hundredth of them to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises NotImplementedError: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None
    ) -> None:
        """Raises NotImplementedError: `blocked_autorange` finds how many runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """So many runs that reading the clock takes a ten thousandth of their time."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        if self._timeit(1) > min_run_time:  # also warms up
            return 1
        number = 1
        while number * 10 <= _MOST_RUNS:
            taken = self._timeit(number)
            small = overhead <= 1e-4 * taken and taken >= min_run_time / 1000
            if small or taken > min_run_time:
                break
            number *= 10
        return number

    def _collect(self, enough, min_run_time, max_run_time, callback) -> Measurement:
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            total = 0.0
            while total < min_run_time or not enough(number, times):
                times.append(self._timeit(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                if total > max_run_time:
                    break
        return self._measured(number, times)

    def blocked_autorange(
        self,
        callback: Callable[[int, float], NoReturn] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Times blocks of runs, which are long enough for the clock, until together
        they took `min_run_time` seconds.

        Args:
            callback: is called with the runs of a block and its seconds.
        """
        return self._collect(
            lambda number, times: bool(times), min_run_time, float("inf"), callback
        )

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """The same until the interquartile range is less than `threshold` of the
        median, with more than three times, or `max_run_time` is over."""

        def enough(number: int, times: list[float]) -> bool:
            if len(times) <= 3:
                return False
            return self._measured(number, times).meets_confidence(threshold)

        return self._collect(enough, min_run_time, max_run_time, callback)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ):
        """Instructions of the statement, counted by valgrind in a process of its own.

        The operator `@=` switches the counting, so the statement may not use it.

        Args:
            number: runs that are counted together, after some to warm up.
            repeats: how often to count; then the result is a tuple.
            collect_baseline: counts the statement `pass` too.
            retain_out_file: keeps callgrind's file in `stmt_callgrind_out`.

        Returns:
            CallgrindStats.

        Raises:
            OSError: there is no valgrind, or it failed.
            ValueError: a global is of a type that cannot be taken along.
            NotImplementedError: the statement is C++.
        """
        from .callgrind import collect

        if self._language is Language.CPP:
            raise NotImplementedError("Timer.collect_callgrind of C++ statements")
        found = collect(
            self._task_spec,
            self._globals,
            number,
            repeats or 1,
            baseline=collect_baseline and self._task_spec.stmt != "pass",
            retain=retain_out_file,
        )
        return found if repeats else found[0]
