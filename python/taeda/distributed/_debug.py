"""How much a group checks and tells, and a debugger in one rank."""

from __future__ import annotations

import itertools
import os

__all__ = [
    "DebugLevel",
    "breakpoint",
    "get_debug_level",
    "set_debug_level",
    "set_debug_level_from_env",
]


class DebugLevel:
    """OFF, INFO or DETAIL. Shapes, dtypes and order are compared at each level."""

    __slots__ = ("name", "value")
    OFF: DebugLevel
    INFO: DebugLevel
    DETAIL: DebugLevel

    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"<DebugLevel.{self.name}: {self.value}>"

    def __int__(self) -> int:
        return self.value


for _value, _name in enumerate(("OFF", "INFO", "DETAIL")):
    setattr(DebugLevel, _name, DebugLevel(_name, _value))


def _level_of_environment() -> DebugLevel:
    given = os.environ.get("TAEDA_DISTRIBUTED_DEBUG")
    text = given or os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF")
    found = getattr(DebugLevel, text.upper(), None)
    if not isinstance(found, DebugLevel):
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, got "
            f"{text!r}"
        )
    return found


# Of this process; replaced as a whole.
_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level that is set, or the environment's TORCH_DISTRIBUTED_DEBUG."""
    return _level or _level_of_environment()


def set_debug_level(level: DebugLevel) -> None:
    """Sets the level of this process."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Sets the level that TORCH_DISTRIBUTED_DEBUG names."""
    set_debug_level(_level_of_environment())


# Calls of `breakpoint` with `skip`, of all threads: `next` is one step of Python's.
_skipping_calls = itertools.count(1)


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Starts the debugger in one rank; the others wait for its end.

    Args:
        rank: which.
        skip: so many calls that give it pass before one stops.
        timeout_s: seconds that the others wait.
    """
    import pdb
    import sys
    from datetime import timedelta

    from ._collectives import barrier
    from ._join import get_rank

    if skip > 0 and next(_skipping_calls) <= skip:
        return
    if get_rank() == rank:
        pdb.Pdb().set_trace(sys._getframe(1))
    barrier(timeout=timedelta(seconds=timeout_s))
