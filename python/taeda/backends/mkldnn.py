"""oneDNN, which runs convolutions and large products."""

from __future__ import annotations

from taeda.backends import _Flags

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether the build has oneDNN."""
    return True


def flags(**values) -> _Flags:
    """Switches for the length of a `with` block."""
    return _Flags(globals(), values)
