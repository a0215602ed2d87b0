"""The first call that makes a NaN, as an error at that call."""

from __future__ import annotations

import linecache
import os

import taeda
from taeda import _profiler

__all__ = ["nan_guard"]
_OWN = os.path.dirname(taeda.__file__) + os.sep


class nan_guard:
    """Raises where an operator or a backward node makes a NaN or an infinity.

    The error names the operator or node, the shapes and dtypes that it was given, the
    module by its path, and the program's line; of a node, module and line are those of
    the call that it differentiates. A call whose arguments have such values already
    (numbers among them: a mask of `-inf`) is not to blame, nor is one that makes memory
    without values (`empty`). Every result of a call of the program is read once, what
    runs inside of calls is not looked at. All threads are guarded.

    Args:
        infinities (bool): False: NaN alone counts.

    Raises:
        RuntimeError: at the call; and on entering, where a profile is recorded.

    Example:
        >>> with taeda.debug.nan_guard():
        ...     y = taeda.ones(3).log()
    """

    def __init__(self, *, infinities: bool = True) -> None:
        self.infinities = infinities
        # Modules that were called, by number, each with the one that called it first;
        # added to with the GIL held. They are kept, so that ids stay theirs.
        self._called: list[tuple] = []

    def __enter__(self) -> nan_guard:
        _profiler.guard_start(self._place, self.infinities)
        self._watch_modules()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        from taeda.nn import Module

        del Module.__call__  # `Module` itself inherits its own
        _profiler.guard_stop()
        self._called.clear()

    def _watch_modules(self) -> None:
        """Tells csrc which module runs; hooks would take the slow way of a call."""
        from taeda.nn import Module

        plain = Module.__call__
        enter, numbers = _profiler.guard_module, {}

        def first_call(module) -> int:
            outer = enter(-1)
            enter(outer)
            numbers[id(module)] = number = len(self._called)
            self._called.append((module, outer))
            return number

        def watched(self, *args, **kwargs):
            number = numbers.get(id(self))
            outer = enter(first_call(self) if number is None else number)
            try:
                return plain(self, *args, **kwargs)
            finally:
                enter(outer)

        Module.__call__ = watched

    def _path(self, number: int) -> str:
        module, outer = self._called[number]
        kind = type(module).__name__
        if outer < 0:
            return kind
        for name, child in self._called[outer][0].named_modules():
            if child is module and name:
                return f"{self._path(outer)}.{name}"
        return f"{self._path(outer)}.{kind}"

    def _place(self, frames: list[tuple[str, int, str]], number: int) -> str:
        """What an error says of where it was; frames are innermost first."""
        text = f"; in module {self._path(number)}" if number >= 0 else ""
        for file, line, function in frames:
            if not file.startswith(_OWN):
                source = linecache.getline(file, line).strip()
                text += f"; at {file}:{line} in {function}"
                return f"{text}: {source}" if source else text
        return text
