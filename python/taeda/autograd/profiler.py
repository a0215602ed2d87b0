"""The old place of the profiler; `taeda.profiler` is to have one."""

from __future__ import annotations

import time

from taeda._absent import absent_class

__all__ = ["record_function"]


class record_function:
    """Names a block for the profiler; without one running it costs nothing.

    Args:
        name (str): how the block is shown.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> record_function:
        self.started = time.perf_counter()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.seconds = time.perf_counter() - self.started

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def called(*args, **kwargs):
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return called


profile = absent_class("autograd.profiler.profile")
EventList = absent_class("autograd.profiler.EventList", list)
emit_nvtx = absent_class("autograd.profiler.emit_nvtx")
