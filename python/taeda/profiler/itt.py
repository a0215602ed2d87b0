"""Marks for VTune, which take a library that this build does not have."""

from __future__ import annotations

from contextlib import contextmanager

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether VTune's library is there: no."""
    return False


def _refuse():
    raise RuntimeError("ITT functions not installed: this build has no ITT library")


def range_push(msg):
    """Begins a range inside of the thread's last one.

    Raises:
        RuntimeError: there is no library, as all of this module but `is_available`.
    """
    _refuse()


def range_pop():
    """Ends the thread's last range."""
    _refuse()


def mark(msg):
    """Marks a moment."""
    _refuse()


@contextmanager
def range(msg, *args, **kwargs):
    """A range that is a block; its text is `msg.format(*args, **kwargs)`."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
