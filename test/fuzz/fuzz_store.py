"""Messages to a TCPStore's server: well-formed, damaged, cut and never ending.

Whatever comes, the server goes on: it answers its other clients, and takes no more
memory than came. An input is a connection with `MESSAGES` frames.
"""

from __future__ import annotations

import contextlib
import datetime
import random
import resource
import socket
import struct
import sys

from costs import SANITIZED
from harness import main, mutate
from taeda.distributed import TCPStore

MESSAGES = 10
MOST_GROWTH = 64 << 20  # bytes; a batch of a thousand inputs sends less than 16 MiB
HELLO = b"TAEDAst1"
KEYS = [b"", b"a", b"b", b"/" * 300, b"\0\xff"]
NUMBERS = [0, 1, -1, 5, 2**31, 2**63 - 1, -(2**63)]
# The fields of each action, by its number: k a key or value, n a number, l a list.
FIELDS = "kk nl kn kkk l nl k - kk ll kk nl k k - nn".split()
LENGTHS = [0, 1, 4, 5, 255, 2**16, 2**30, 2**30 + 1, 2**31, 2**32 - 1]


class _Server:
    """A server in this process with a client that it must go on answering."""

    def __init__(self) -> None:
        wait = datetime.timedelta(seconds=20)
        self.store = TCPStore("127.0.0.1", 0, None, True, timeout=wait)
        self.before = None
        self.count = 0

    def check(self) -> None:
        self.count += 1
        if self.count % 20 != 1:
            return
        value = str(self.count)
        self.store.set("own", value)
        if self.store.get("own") != value.encode():
            raise AssertionError("a value came back wrong")
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.before = self.before or now
        if not SANITIZED and now > self.before + MOST_GROWTH:
            raise AssertionError(f"memory grew from {self.before} to {now} bytes")


# Made by each child of the harness, which has one thread.
_server: _Server | None = None


def _text(source: random.Random) -> bytes:
    data = source.choice(KEYS)
    if source.random() < 0.2:
        data = source.randbytes(source.choice([1, 100, 3000]))
    return struct.pack("<I", len(data)) + data


def _field(kind: str, source: random.Random) -> bytes:
    if kind == "k":
        return _text(source)
    if kind == "n":
        return struct.pack("<q", source.choice(NUMBERS))
    count = source.choice([0, 1, 2, 7])
    said = count if source.random() < 0.8 else source.choice(LENGTHS)
    return struct.pack("<I", said) + b"".join(_text(source) for _ in range(count))


def _frame(source: random.Random) -> bytes:
    action = source.randrange(len(FIELDS) + 2)
    kinds = FIELDS[action] if action < len(FIELDS) else "kn"
    if source.random() < 0.1:
        kinds = source.choice(FIELDS)
    body = bytes([action])
    body += b"".join(_field(kind, source) for kind in kinds.strip("-"))
    if source.random() < 0.2:
        body = mutate(body, source)
    said = len(body) if source.random() < 0.9 else source.choice(LENGTHS)
    return struct.pack("<I", said) + body


def attempt(source: random.Random) -> bool:
    """One connection; True when the server answered something."""
    global _server
    _server = _server or _Server()
    hello = HELLO if source.random() < 0.95 else mutate(HELLO, source)
    data = hello + b"".join(_frame(source) for _ in range(MESSAGES))
    if source.random() < 0.1:
        data = data[: source.randrange(len(data) + 1)]
    answered = False
    with socket.create_connection(("127.0.0.1", _server.store.port), 20) as link:
        with contextlib.suppress(OSError):  # the server ends what it cannot read
            while data:
                piece = source.choice([1, 7, 4096, len(data)])
                link.sendall(data[:piece])
                data = data[piece:]
            link.settimeout(source.choice([0.0, 0.002, 0.02]))
            answered = bool(link.recv(4096))
    _server.check()
    return answered


if __name__ == "__main__":
    sys.exit(main("fuzz_store", attempt))
