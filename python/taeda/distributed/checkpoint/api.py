"""The error of a checkpoint: what went wrong at which rank."""

from __future__ import annotations

import pickle
import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """A step of saving or loading failed at some rank; every rank raises it.

    Args:
        msg (str): the step: "plan", "write" or "read".
        failures (dict): rank -> (exception, its stack).
    """

    def __init__(self, msg: str, failures: dict) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict:
        """Rank -> (exception, its stack)."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, stack) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += traceback.format_list(stack) if stack is not None else []
            lines += traceback.format_exception_only(type(error), error)
        return "".join(lines)


class Failure:
    """An exception on its way to other ranks."""

    def __init__(self, error: BaseException) -> None:
        stack = traceback.extract_tb(error.__traceback__)
        for frame in stack:
            # From Python 3.13 on a frame refers to code, which cannot be pickled.
            if getattr(frame, "_code", None) is not None:
                frame._code = None
        self.error, self.stack = _sendable(error), stack

    def pair(self) -> tuple:
        """As `CheckpointException.failures` has it."""
        return self.error, self.stack


def _sendable(error: BaseException) -> BaseException:
    """The exception, or one that can be pickled and says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the class's own way of being pickled raises
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
