"""Questions about sizes, which are plain numbers here."""

from __future__ import annotations

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "is_symbolic",
    "statically_known_true",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """A condition depends on a tensor's values; never with plain numbers."""


def _truth(a) -> bool:
    """Whether a condition holds."""
    return bool(a)


guard_or_false = guard_or_true = guard_size_oblivious = statically_known_true = _truth


def is_symbolic(val) -> bool:
    """Whether a size is symbolic: never."""
    return False


def free_symbols(val) -> set:
    """The symbols in a size: none."""
    return set()


free_unbacked_symbols = free_symbols
