"""Ctrl-C while processes are started and ended.

Python raises KeyboardInterrupt between any two steps: after a process began and before
anyone knows of it, or between the first and the second of three that have to be ended.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time

_PATIENCE_SECONDS = 5.0
_SOON_SECONDS = 0.01


class Undisturbed:
    """A block that Ctrl-C does not break off: the interrupt comes at its end.

    Who interrupts again after some seconds is not kept waiting, lest a block that never
    ends cannot be left. Threads other than the main one are never interrupted.

    Args:
        finalizer: whether the block is a finalizer's, out of which no exception comes:
            the interrupt then comes soon after it.
    """

    def __init__(self, finalizer: bool = False) -> None:
        self._finalizer = finalizer
        self._handler = self._since = None

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
        elif now - self._since > _PATIENCE_SECONDS:
            self._handler(number, frame)

    def __exit__(self, *_) -> None:
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if self._since is None:
            return
        if self._finalizer:
            _thread.start_new_thread(_interrupt_soon, ())
        else:
            self._handler(signal.SIGINT, None)


def _interrupt_soon() -> None:
    time.sleep(_SOON_SECONDS)
    _thread.interrupt_main(signal.SIGINT)


class Deaf:
    """A block whose new processes do not hear Ctrl-C, from their first step on."""

    def __enter__(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def __exit__(self, *_) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
