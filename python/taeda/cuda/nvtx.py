"""Marks for NVIDIA's profilers, which take a CUDA build."""

from __future__ import annotations

from contextlib import contextmanager

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _refuse():
    raise RuntimeError(
        "NVTX functions not installed: this build of taeda has no CUDA library"
    )


def range_push(msg):
    """Begins a range inside of the thread's last one.

    Raises:
        RuntimeError: no CUDA build, as all of this module.
    """
    _refuse()


def range_pop():
    """Ends the thread's last range."""
    _refuse()


def range_start(msg) -> int:
    """Begins a range that another thread may end."""
    _refuse()


def range_end(range_id) -> None:
    """Ends it."""
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
