"""One pass over a pipe: an iterator that knows whether it is the pipe's newest."""

from __future__ import annotations

from functools import wraps
from inspect import CO_GENERATOR, signature

__all__ = ["Pass", "described", "watched"]


def described(pipe) -> str:
    """The pipe's class and the arguments it keeps: `Mapper(datapipe=..., fn=f)`."""
    shown = []
    for name in signature(type(pipe)).parameters:
        value = vars(pipe).get(name, pipe)
        if value is not pipe:
            text = getattr(value, "__name__", None) or str(value)
            shown.append(f"{name}={text}")
    return f"{type(pipe).__name__}({', '.join(shown)})"


class Pass:
    """An iterator over a pipe.

    It refuses to go on once the pipe has begun a newer pass, since both would draw
    from the same sources. Errors of the pipe's code get the pipe's description.
    """

    __slots__ = ("begun", "claim", "pipe", "samples")

    def __init__(self, pipe, begin, at_once: bool) -> None:
        self.pipe, self.samples, self.claim = pipe, None, None
        self.begun = begin
        if at_once:
            self._begin()

    def _begin(self) -> None:
        self.claim = self.pipe._claim()
        self.samples, self.begun = self.begun(self.pipe), None

    def __iter__(self):
        return self

    def __next__(self):
        if self.begun is not None:
            self._begin()
        self._check()
        try:
            sample = next(self.samples)
        except StopIteration:
            raise
        except Exception as error:
            if error.args and isinstance(error.args[0], str):
                place = f"thrown by __iter__ of {described(self.pipe)}"
                text = f"{error.args[0]}\nThis exception is {place}"
                error.args = (text, *error.args[1:])
            raise
        # The sample may have come from a source that began another pass meanwhile.
        self._check()
        return sample

    def _check(self) -> None:
        if not self.pipe._holds(self.claim):
            raise RuntimeError(
                "This iterator has been invalidated: another one has been created from "
                f"{described(self.pipe)} since. Use `fork` to read a pipe twice."
            )

    def __getattr__(self, name: str):
        return getattr(self.samples if self.begun is None else self.pipe, name)


def watched(begin):
    """The `__iter__` of a pipe with a `Pass` around what it returns.

    As for any generator, one that is written as a generator begins with its first
    sample; others begin at once.
    """
    if getattr(begin, "_watched", False):
        return begin
    at_once = not begin.__code__.co_flags & CO_GENERATOR

    @wraps(begin)
    def __iter__(self):
        return Pass(self, begin, at_once)

    __iter__._watched = True
    return __iter__
