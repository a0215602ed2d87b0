"""Results that are not there yet."""

from __future__ import annotations

import types
from concurrent import futures as _futures
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that somebody sets later.

    Args:
        devices: of the value's tensors; only the CPU.
    """

    # For annotations: `Future[Tensor]`.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, devices=None) -> None:
        self._future: _futures.Future = _futures.Future()

    def done(self) -> bool:
        """Whether the value (or an error) has been set."""
        return self._future.done()

    def wait(self) -> Any:
        """Waits for the value and returns it; raises the error that was set."""
        return self._future.result()

    def value(self) -> Any:
        """The value of a future that is done.

        Raises:
            RuntimeError: it is not done.
        """
        if not self.done():
            raise RuntimeError("Future: the value is not there yet; use wait()")
        return self._future.result()

    def set_result(self, result: Any) -> None:
        """Sets the value, once.

        Raises:
            RuntimeError: it is set already.
        """
        try:
            self._future.set_result(result)
        except _futures.InvalidStateError:
            raise RuntimeError("Future: it can be completed only once") from None

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` raises."""
        self._future.set_exception(result)

    def then(self, callback) -> Future:
        """A future of what `callback(self)` returns, called when this one is done."""
        following = Future()

        def run(_) -> None:
            try:
                following.set_result(callback(self))
            except BaseException as error:
                following.set_exception(error)

        self._future.add_done_callback(run)
        return following

    def add_done_callback(self, callback) -> None:
        """Calls `callback(self)` when this future is done."""
        self._future.add_done_callback(lambda _: callback(self))


def collect_all(futures: list[Future]) -> Future:
    """A future of the list of futures, done when all of them are."""
    from threading import Lock

    together, left, lock = Future(), len(futures), Lock()
    if not futures:
        together.set_result([])

    def one(_) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            together.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    return together


def wait_all(futures: list[Future]) -> list:
    """The values of several futures."""
    return [future.wait() for future in collect_all(futures).wait()]
