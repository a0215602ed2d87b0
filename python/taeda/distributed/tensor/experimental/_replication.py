"""Plain tensors among distributed ones."""

from __future__ import annotations

from contextlib import contextmanager

from .. import _dispatch

__all__ = ["implicit_replication"]


@contextmanager
def implicit_replication():
    """Within, plain tensors among distributed ones stand for replicas.

    It is the program's to see that all ranks have the same values in them.
    """
    before = _dispatch.allows_plain[0]
    _dispatch.allows_plain[0] = True
    try:
        yield
    finally:
        _dispatch.allows_plain[0] = before
