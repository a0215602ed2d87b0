"""Exceptions carried from a worker to the loader."""

from __future__ import annotations

import sys
import traceback

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


class KeyErrorMessage(str):
    """A text that KeyError shows with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception's type and traceback as text; `reraise` raises it here.

    Args:
        exc_info: as from sys.exc_info(). where: said in the text.
    """

    def __init__(self, exc_info=None, where: str = "in background") -> None:
        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type, self.name, self.where = kind, kind.__name__, where
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))

    def __getstate__(self) -> dict:
        # A class that the other process cannot import travels by name only.
        kind = value = self.exc_type
        try:
            value = sys.modules[kind.__module__]
            for part in kind.__qualname__.split("."):
                value = getattr(value, part)
        except (AttributeError, KeyError):
            value = None
        return {**self.__dict__, "exc_type": kind if value is kind else RuntimeError}

    def reraise(self):
        """Raise an exception of the same type whose text has the traceback."""
        # Not in a local variable: a cycle through the traceback would keep the
        # loader, and so its workers, alive.
        raise self._error()

    def _error(self) -> BaseException:
        kind = self.exc_type
        text = f"Caught {self.name} {self.where}.\nOriginal {self.exc_msg}"
        if kind is KeyError:
            return KeyError(KeyErrorMessage(text))
        try:
            return kind(text)
        except Exception:
            # A constructor that wants other arguments.
            return RuntimeError(text)
