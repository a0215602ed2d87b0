"""The first call that makes a NaN, as an error at that call."""

from __future__ import annotations

import linecache
import os
import threading

import taeda
from taeda import _C
from taeda.autograd._profiler_hooks import ModulePaths

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
        self._handles: list = []
        self._paths: list[str] = []  # by number; appended to with the GIL held
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> nan_guard:
        _C._guard_start(self._place, self.infinities)
        self._watch_modules()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        _C._guard_stop()

    def _number(self, path: str) -> int:
        number = self._numbers.get(path)
        if number is None:
            self._numbers[path] = number = len(self._paths)
            self._paths.append(path)
        return number

    def _watch_modules(self) -> None:
        from taeda.nn.modules import module

        paths, local, enter = ModulePaths(), threading.local(), _C._guard_module

        def begins(own, args) -> None:
            outer = enter(self._number(paths.enter(own)))
            if outer < 0:
                local.outer = []
            local.outer.append(outer)

        def ends(own, args, output) -> None:
            if getattr(local, "outer", None):  # else it began before the guard
                enter(local.outer.pop())
                paths.leave()

        self._handles = [
            module.register_module_forward_pre_hook(begins),
            module.register_module_forward_hook(ends, always_call=True),
        ]

    def _place(self, frames: list[tuple[str, int, str]], number: int) -> str:
        """What an error says of where it was; frames are innermost first."""
        text = f"; in module {self._paths[number]}" if number >= 0 else ""
        for file, line, function in frames:
            if not file.startswith(_OWN):
                source = linecache.getline(file, line).strip()
                text += f"; at {file}:{line} in {function}"
                return f"{text}: {source}" if source else text
        return text
