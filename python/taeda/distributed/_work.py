"""The end of a collective or message."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from taeda.futures import Future

__all__ = ["DoneWork", "NativeWork", "Work", "Works"]


class Work:
    """An operation that may still run; `wait` returns at its end.

    Backends derive from it. What they must define is `wait`.
    """

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the operation and raises its error.

        Args:
            timeout: zero means the operation's own.

        Returns:
            True.

        Raises:
            DistBackendError: the operation failed or does not end in time.
        """
        raise NotImplementedError(f"{type(self).__name__}.wait is not defined")

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self.exception() is not None or self.is_success()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return False

    def exception(self) -> BaseException | None:
        """The error, None as long as there is none."""
        return None

    def result(self) -> list:
        """The tensors that it has filled."""
        return []

    def source_rank(self) -> int:
        """The sender's rank in the group, of a message that was received."""
        return self._source_rank()

    def _source_rank(self) -> int:
        raise RuntimeError(f"{type(self).__name__}: no message was received here")

    def get_future(self) -> Future:
        """A future of `result()`."""
        raise NotImplementedError(f"{type(self).__name__} has no future")

    def get_future_result(self) -> Future:
        """A future of how it ended: 0 well, 1 out of time, 2 with another error."""
        return self.get_future().then(_how_it_ended)

    def synchronize(self) -> None:
        """The same as `wait`: there are no streams on the CPU."""
        self.wait()

    def block_current_stream(self) -> None:
        """The same as `wait`: there are no streams on the CPU."""
        self.wait()


def _how_it_ended(future: Future) -> int:
    try:
        future.value()
    except Exception as error:
        return 1 if "timed out" in str(error) else 2
    return 0


class DoneWork(Work):
    """An operation that ended when it was called."""

    def __init__(self, outputs: list | None = None) -> None:
        self._outputs = outputs or []

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def result(self) -> list:
        return self._outputs

    def get_future(self) -> Future:
        future = Future()
        future.set_result(self._outputs)
        return future


class NativeWork(Work):
    """A work of `taeda._distributed`.

    Args:
        native: it.
        outputs: the tensors that it fills.
        finish: called once when it has ended well, before anybody sees the outputs.
        waiter: waits in place of the native work; it moves messages meanwhile.
    """

    def __init__(self, native, outputs: list, finish=None, waiter=None) -> None:
        self._native, self._outputs = native, outputs
        self._finish, self._waiter = finish, waiter

    def _end(self) -> None:
        # One thread at most takes it: pop of a dict is atomic under the GIL.
        finish = self.__dict__.pop("_finish", None)
        if finish is not None:
            finish()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        limit = timeout if timeout else timedelta(milliseconds=-1)
        if self._waiter is None:
            self._native.wait(limit)
        else:
            self._waiter(self._native, limit)
        self._end()
        return True

    def is_completed(self) -> bool:
        return self._native.is_completed()

    def is_success(self) -> bool:
        return self._native.is_completed() and self._native.exception() is None

    def exception(self) -> BaseException | None:
        return self._native.exception()

    def result(self) -> list:
        self.wait()
        return self._outputs

    def _source_rank(self) -> int:
        return self._native.source()

    def get_future(self) -> Future:
        future = Future()

        def end() -> None:
            error = self._native.exception()
            if error is not None:
                future.set_exception(error)
                return
            self._end()
            future.set_result(self._outputs)

        self._native.then(end)
        return future


class Works(Work):
    """Several operations as one; they end when the last does."""

    def __init__(self, works: list[Work], outputs: list[Any]) -> None:
        self._works, self._outputs = works, outputs

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> BaseException | None:
        return next((e for w in self._works if (e := w.exception())), None)

    def result(self) -> list:
        self.wait()
        return self._outputs

    def get_future(self) -> Future:
        from taeda.futures import collect_all

        def outputs(done: Future) -> list:
            for future in done.value():
                future.wait()
            return self._outputs

        return collect_all([work.get_future() for work in self._works]).then(outputs)
