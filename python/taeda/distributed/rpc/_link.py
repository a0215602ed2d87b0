"""A connection to one worker: it sends without waiting and reads in a thread.

Note [Who may wait]
Readers of connections and the clock never send more than fits the socket's buffer,
never wait for a call and never run a program's functions: else two workers that send to
each other at once could wait for ever. `send` tries the socket at once; what does not
fit is copied and a second thread sends it. A program's callbacks that come due in such
a thread are run by the pool (`_pool.py`).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable

from . import _pool
from ._wire import FrameReader, FrameWriter, Keys

__all__ = ["Link"]

# After so many seconds in which the other side took nothing it counts as lost.
_STALLED_SECONDS = 60
_MOST_PIECES = 512


class Link:
    """An open connection.

    Args:
        connection: greeted; the link owns it from now on.
        keys: of its greeting.
        on_frame: called in the reading thread with (link, kind, number, body).
        on_lost: called once in the reading thread with (link, error).
        worker: the number of the worker at the other end.
    """

    def __init__(
        self,
        connection: socket.socket,
        keys: Keys,
        on_frame: Callable,
        on_lost: Callable,
        worker: int,
    ) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit = struct.pack("ll", _STALLED_SECONDS, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.worker = worker
        self.said_goodbye = False
        self._connection = connection
        self._writer = FrameWriter(keys.send, keys.local)
        self._reader = FrameReader(connection, keys.receive, keys.local)
        self._on_frame, self._on_lost = on_frame, on_lost
        # Guards the writer, the bytes that wait, and the socket's sending side.
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._sending = False
        self._closed = False

    def start(self) -> None:
        """Begins to read."""
        _pool.thread(self._read, f"rpc-read-{self.worker}")

    def send(self, kind: int, number: int, parts: list[bytes]) -> None:
        """Sends a frame, now or by the second thread.

        Raises:
            OSError: the connection is closed.
        """
        with self._lock:
            if self._closed:
                raise ConnectionError("the connection is closed")
            pieces = self._writer.frame(kind, number, parts)
            if not self._waiting:
                pieces = self._send_some(pieces)
            if not pieces:
                return
            self._waiting.extend(bytes(piece) for piece in pieces)
            if not self._sending:
                self._sending = True
                _pool.thread(self._send_waiting, f"rpc-send-{self.worker}")

    def _send_some(self, pieces: list) -> list:
        """What did not fit; the lock is held."""
        views = deque(memoryview(piece) for piece in pieces)
        while views:
            some = [views[i] for i in range(min(len(views), _MOST_PIECES))]
            try:
                count = self._connection.sendmsg(some, [], socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            while count:
                taken = min(count, len(views[0]))
                count -= taken
                if taken == len(views[0]):
                    views.popleft()
                else:
                    views[0] = views[0][taken:]
            while views and not len(views[0]):
                views.popleft()
        return list(views)

    def _send_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._closed:
                    self._sending = False
                    return
                piece = self._waiting[0]
            try:
                self._connection.sendall(piece)
            except OSError:
                # The reader wakes, finds the connection ended and reports it.
                self.close()
                return
            with self._lock:
                if self._waiting:
                    self._waiting.popleft()

    def _read(self) -> None:
        _pool.must_not_wait()
        try:
            while True:
                self._on_frame(self, *self._reader.read())
        except Exception as error:
            self.close()
            self._on_lost(self, error)

    def close(self) -> None:
        """Ends the connection; the reader wakes and reports it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._waiting.clear()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
