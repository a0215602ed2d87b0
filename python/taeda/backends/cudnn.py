"""cuDNN, which this build does not have; the switches keep what they are set to."""

from __future__ import annotations

from taeda.backends import _Flags

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN can be used."""
    return False


def version() -> int | None:
    """The version of cuDNN; None without it."""
    return None


def is_acceptable(tensor) -> bool:
    """Whether cuDNN computes on this tensor."""
    return False


def set_flags(**values) -> tuple:
    """Set switches; returns their old values."""
    before = tuple(globals()[name] for name in values)
    globals().update(values)
    return before


def flags(**values) -> _Flags:
    """Switches for the length of a `with` block."""
    return _Flags(globals(), values)
