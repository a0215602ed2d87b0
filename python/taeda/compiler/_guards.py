"""Guards that a program leaves out, and ranks that recompile together."""

from __future__ import annotations

import functools
import re

from taeda._dynamo.types import Guard, GuardFilterEntry, GuardSource

__all__ = ["filtering", "set_enable_guard_collectives"]


def filtering(function):
    """What capture calls with the rows of its guards: whether each of them stays.

    Args:
        function: a `guard_filter_fn`, which gets a list of `GuardFilterEntry`.
    """

    def choose(rows) -> list[bool]:
        kept = function([_entry(*row) for row in rows])
        if len(kept) != len(rows):
            raise AssertionError(
                f"guard_filter_fn: expected {len(rows)} results, one for each guard, "
                f"got {len(kept)}"
            )
        for each in kept:
            if type(each) is not bool:
                raise AssertionError(f"guard_filter_fn: expected bools, got {each!r}")
        return list(kept)

    return choose


def _entry(name, has_value, value, kind, is_global, module, builtin):
    guard = Guard(name, GuardSource(is_global, module, builtin))
    # Variables of the function are called as in the program.
    name = re.sub(r"\bL\['(\w+)'\]", r"\1", name)
    return GuardFilterEntry(name, has_value, value, kind, (), is_global, guard)


@functools.lru_cache(maxsize=1)
def _group(world):
    """A group of its own, so that no other collective comes between."""
    from taeda import distributed

    return distributed.new_group()


def _on_all_ranks(found: bool) -> bool:
    """Whether each rank has a graph that fits."""
    from taeda import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return found
    results = [None] * distributed.get_world_size()
    group = _group(distributed.group.WORLD)
    distributed.all_gather_object(results, found, group=group)
    return all(results)


def _frames_module():
    from ._frames import _module

    return _module()


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Whether ranks ask each other at each call whether all have a graph that fits.

    Where one has none, all capture again, so that no rank waits in a collective of the
    program for one that is still compiling. Each call costs a collective. All ranks
    have to make the same calls of compiled functions.

    Returns:
        The setting before.

    Example:
        >>> taeda.compiler.set_enable_guard_collectives(True)
        False
        >>> taeda.compiler.set_enable_guard_collectives(False)
        True
    """
    return _frames_module().set_guard_hook(_on_all_ranks if enabled else None)
