"""Where a worker can be reached, and who may come in.

Callers that have not proved yet that they belong to the job get few threads, little
time and no memory: one more than `_MOST_UNKNOWN` drops the oldest of them.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from ._pool import thread
from ._wire import answer, greet

__all__ = ["Listener", "connect"]

_GREETING_SECONDS = 10.0
_MOST_UNKNOWN = 64


class Listener:
    """A listening socket.

    Args:
        host: the address of this machine at which others reach it; no other is bound.
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.bind((host, 0))
        self._socket.listen(256)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        # Connections without a proof, oldest first.
        self._unknown: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, secret: bytes, me: int, came: Callable) -> None:
        """Calls `came(connection, keys, caller)` for each caller of the job."""
        self._secret, self._me, self._came = secret, me, came
        thread(self._accept, "rpc-listen")

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                threading.Event().wait(0.05)  # Out of descriptors, for a moment.
                continue
            with self._lock:
                self._unknown[connection] = None
                oldest = None
                if len(self._unknown) > _MOST_UNKNOWN:
                    oldest = next(iter(self._unknown))
            if oldest is not None:
                self._forget(oldest, close=True)
            try:
                thread(lambda c=connection: self._greet(c), "rpc-greet")
            except RuntimeError:  # No more threads, for a moment.
                self._forget(connection, close=True)

    def _greet(self, connection: socket.socket) -> None:
        """In a thread of its own, for some seconds."""
        try:
            seconds = _GREETING_SECONDS
            caller, keys = answer(connection, self._secret, self._me, seconds)
        except (OSError, ValueError):
            self._forget(connection, close=True)
            return
        if self._forget(connection, close=False):
            self._came(connection, keys, caller)

    def _forget(self, connection: socket.socket, close: bool) -> bool:
        """Whether the connection was still one of the unknown."""
        with self._lock:
            known = connection in self._unknown
            self._unknown.pop(connection, None)
        if close:
            _shut(connection)
            connection.close()
        return known

    def close(self) -> None:
        """Takes no more connections."""
        self._closed = True
        _shut(self._socket)
        self._socket.close()
        with self._lock:
            unknown = list(self._unknown)
        for connection in unknown:
            self._forget(connection, close=True)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def connect(address, secret: bytes, me: int, you: int, seconds: float):
    """A connection to a worker and its keys.

    Raises:
        OSError: nobody listens there.
        WireError: somebody else does.
    """
    connection = socket.create_connection(tuple(address), timeout=seconds)
    try:
        return connection, greet(connection, secret, me, you, seconds)
    except BaseException:
        connection.close()
        raise
