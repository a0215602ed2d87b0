"""The old place of the profiler; `taeda.profiler` is to have one."""

from __future__ import annotations

import time

from taeda._lazy import attributes

__all__ = ["record_function"]
__getattr__ = attributes(__name__)


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
