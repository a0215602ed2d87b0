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
            raise RuntimeError(
                "Future can only be marked completed once, and it is completed"
            ) from None

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` raises."""
        self._future.set_exception(result)

    def then(self, callback) -> Future:
        """A future of what `callback(self)` returns, called when this one is done.

        What the callback raises becomes a RuntimeError of the future that is returned.
        """
        following = Future()

        def run(_) -> None:
            try:
                result = callback(self)
            except Exception as error:
                text = (
                    "Got the following error when running the callback: "
                    f"{type(error).__name__}: {error}"
                )
                failed = RuntimeError(text)
                failed.__cause__ = error
                following.set_exception(failed)
            else:
                following.set_result(result)

        self._future.add_done_callback(run)
        return following

    def add_done_callback(self, callback) -> None:
        """Calls `callback(self)` when this future is done; its errors are logged."""
        self._future.add_done_callback(lambda _: callback(self))

    def __reduce__(self):
        raise RuntimeError(
            "Can not pickle torch.futures.Future: its value may come from elsewhere"
        )


def _checked(futures) -> list[Future]:
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    return list(futures)


def collect_all(futures: list[Future]) -> Future:
    """A future of the list of futures, done when all of them are."""
    from threading import Lock

    futures = _checked(futures)
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
