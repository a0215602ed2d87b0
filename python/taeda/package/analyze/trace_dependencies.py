"""Which modules a call runs code of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable


def trace_dependencies(callable: Callable, inputs: Iterable[tuple]) -> list[str]:
    """Names of the modules whose code runs in calls of a function.

    Args:
        callable: the function. inputs: the arguments of each call.
    """
    seen: set[str] = set()

    def note(frame, event, argument) -> None:
        name = frame.f_globals.get("__name__")
        if event == "call" and name is not None:
            seen.add(name)

    before = sys.getprofile()
    try:
        sys.setprofile(note)
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(before)
    return list(seen)
