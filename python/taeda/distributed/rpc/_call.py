"""Calls that are under way, and failures as they travel."""

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any, NamedTuple

from taeda.futures import Future

from . import _pool

__all__ = ["CallFuture", "RemoteException", "failure_from", "failure_of"]


class RemoteException(NamedTuple):
    """What a worker tells of a function that raised.

    Args:
        msg: the worker, the exception and its traceback, as text.
        exception_type: its class.
    """

    msg: str
    exception_type: Any

    def told(self) -> tuple[str, bytes, str]:
        """The text, the class and its name: a caller may not know the class."""
        name = self.exception_type.__qualname__
        try:
            return self.msg, pickle.dumps(self.exception_type), name
        except Exception:
            return self.msg, b"", name


class CallFuture(Future):
    """The result of a call, once it has come."""

    def __init__(self, pool: _pool.Pool) -> None:
        super().__init__()
        self._pool = pool

    def wait(self) -> Any:
        """The result, or the exception that the call ended with."""
        if not self.done():
            with _pool.lent():
                return super().wait()
        return super().wait()

    def _when_done(self, run) -> None:
        """Runs `run()` after the end, in a thread that may wait."""

        def arrange(_) -> None:
            if _pool.may_wait():
                run()
            else:
                self._pool.submit(run)

        self._future.add_done_callback(arrange)

    def then(self, callback) -> CallFuture:
        """A future of what `callback(self)` returns, called when this one is done."""
        following = CallFuture(self._pool)

        def run() -> None:
            try:
                following.set_result(callback(self))
            except BaseException as error:
                following.set_exception(error)

        self._when_done(run)
        return following

    def add_done_callback(self, callback) -> None:
        """Calls `callback(self)` when this future is done."""
        self._when_done(lambda: callback(self))


def failure_of(error: BaseException, worker) -> RemoteException:
    """What is told to a caller; also written to the error output of this worker."""
    text = "".join(traceback.format_exception(error))
    text = f"On {worker}:\n{error!r}\n{text}"
    print(text, file=sys.stderr)
    return RemoteException(text, type(error))


def failure_from(told: tuple[str, bytes, str]) -> BaseException:
    """An exception of the class that was told, with the text that was told."""
    text, pickled, name = told
    try:
        if not pickled:
            raise TypeError("the class cannot be found by its name")
        kind = pickle.loads(pickled)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(text)
        error: Exception = TypeError(f"{kind} is no class of exceptions")
    except Exception as failed:
        error = failed
    return RuntimeError(
        f"Failed to create original exception type {name}: {error}. Original exception "
        f"on remote side was {text}"
    )
