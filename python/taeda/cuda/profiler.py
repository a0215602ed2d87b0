"""Switches of NVIDIA's profilers, which take a CUDA build."""

from __future__ import annotations

from contextlib import contextmanager

from taeda.cuda import _absent

__all__ = ["profile", "start", "stop"]

start, stop = _absent("profiler.start"), _absent("profiler.stop")


@contextmanager
def profile():
    """What runs in the block is profiled.

    Raises:
        AssertionError: no CUDA build.
    """
    start()
    try:
        yield
    finally:
        stop()
