"""Connections between a loader and its workers.

A connection is a pair of Unix sockets that keep packets whole and carry descriptors.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections import deque

from taeda.utils.data._utils.transfer import (
    MAX_FILES,
    PACKET_BYTES,
    close_all,
    pack,
    unpack,
)

_ROOM = PACKET_BYTES + 1024  # for the longest packet
_CROWDED_SECONDS = 0.005


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends for `Channel`."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """One end of a connection that carries objects; for one thread at a time.

    Args:
        sock: an end of `pair()`.
    """

    def __init__(self, sock) -> None:
        self._sock = sock
        self._waiting: deque = deque()  # (packet, files) that did not fit yet

    def fileno(self) -> int:
        """For poll and select."""
        return self._sock.fileno()

    @property
    def waits(self) -> bool:
        """Is there something that did not fit yet?"""
        return bool(self._waiting)

    def send(self, obj, arena=None) -> None:
        """Send an object, or keep it for `flush` while the other end is busy.

        Raises: as `transfer.pack`; ConnectionError when the other end is closed.
        """
        self._waiting.append(pack(obj, arena))
        self.flush()

    def flush(self) -> None:
        """Send what was kept, as far as there is room."""
        while self._waiting:
            packet, files = self._waiting[0]
            try:
                socket.send_fds(self._sock, [packet], files, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                # A user may have no more descriptors on their way than open files.
                if error.errno != errno.ETOOMANYREFS:
                    raise
                time.sleep(_CROWDED_SECONDS)
                return
            self._waiting.popleft()
            close_all(files)

    def ready(self, seconds: float) -> bool:
        """Wait until there is something to receive, or room for what was kept."""
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT if self._waiting else select.POLLIN)
        return bool(poll.poll(1000 * seconds))

    def receive(self):
        """The next object; EOFError when the other end is closed."""
        packet, files, flags, _ = socket.recv_fds(
            self._sock, _ROOM, MAX_FILES + 8, socket.MSG_CMSG_CLOEXEC
        )
        try:
            if not packet:
                raise EOFError
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise RuntimeError(
                    "a batch could not be received: this process has too many open "
                    "files (see ulimit -n)"
                )
            return unpack(packet, files)
        finally:
            close_all(files)

    def close(self) -> None:
        """End the connection: the other end sees it, whoever has copies of this one.

        Processes that another thread forked meanwhile have copies of both sockets,
        so closing would neither be seen nor free what is still on its way.
        """
        while self._waiting:
            close_all(self._waiting.popleft()[1])
        flags = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
            while True:
                packet, files, *_ = socket.recv_fds(self._sock, 1, MAX_FILES + 8, flags)
                close_all(files)
                if not packet:
                    break
        except OSError:
            pass  # the other end is gone, or nothing is left
        self._sock.close()
