"""What travels between two workers: a greeting, then frames.

Note [Frames of calls]
A connection begins with three messages of fixed length. Each side sends 32 random
bytes, and each proves by an HMAC over both that it holds the job's secret; who connects
also says which worker it is and which one it wants. Two keys, one for each direction,
are derived from the secret and the random bytes, so nothing that was recorded on
another connection is of use on this one.

A frame is a head (`_HEAD`: kind, number of the call, bytes of the body), 16 bytes of
HMAC over the frame's place in the stream and its head, the body, and 32 bytes of HMAC
over all of it. Where both sides see that the connection does not leave the machine, and
have said so in the greeting, the second covers no bytes of tensors, which cost more to
sign than to send: who could change them there could change the workers' memory. Thus
- nothing is unpickled that a holder of the secret has not sent, in this place;
- who lacks the secret makes a worker read at most `HELLO.size + PROOF_BYTES` bytes;
- a length is believed only after its HMAC, is bounded (`MOST_BYTES`), and memory grows
  with what arrived, never with what was announced.
The body is `parts`: their number and lengths, then their bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
import time
from typing import NamedTuple

__all__ = [
    "FrameReader",
    "FrameWriter",
    "Keys",
    "WireError",
    "answer",
    "greet",
    "split",
]

_MAGIC = b"TRP1"
# Parts of a message before the bytes of tensors: its note and its pickle.
_ALWAYS_SIGNED = 2
_HEAD = struct.Struct(">4sB3xQQ")
_HEAD_MAC = 16
_BODY_MAC = 32
_NONCE = 32
HELLO = struct.Struct(f">4s{_NONCE}s")
_WELCOME = struct.Struct(f">4s?{_NONCE}s32s")
_PROOF = struct.Struct(">4s?II32s")
PROOF_BYTES = _PROOF.size
_COUNT = struct.Struct(">I")
_LENGTH = struct.Struct(">Q")
# The longest body. What is longer is refused by the sender, by name.
MOST_BYTES = 1 << 40
_MOST_PARTS = 1 << 20
# Memory that is taken before any of a body has arrived; later as much again as has.
_FIRST_BYTES = 1 << 20
_BUFFER_BYTES = 1 << 16

CALL, REMOTE, RESULT, ERROR, GOODBYE = range(1, 6)


class WireError(ConnectionError):
    """The other side ended the connection, or does not speak as it should."""


class Keys(NamedTuple):
    """What a greeting agrees on.

    Args:
        send: signs frames to the other side.
        receive: those from it.
        local: whether the connection stays on this machine.
    """

    send: bytes
    receive: bytes
    local: bool


def _stays_here(connection: socket.socket) -> bool:
    return connection.getpeername()[0] == connection.getsockname()[0]


def _mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), hashlib.sha256)


def _keys(secret: bytes, hello: bytes, welcome: bytes) -> tuple[bytes, bytes]:
    """The keys to the listening side and from it."""
    nonces = hello + welcome
    return _mac(secret, b"to listener", nonces), _mac(secret, b"to caller", nonces)


def _exactly(connection: socket.socket, count: int, end: float) -> bytes:
    """So many bytes; waits until `end` in all, of `time.monotonic()`."""
    data = b""
    while len(data) < count:
        connection.settimeout(max(0.001, end - time.monotonic()))
        more = connection.recv(count - len(data))
        if not more:
            raise WireError("the connection ended during the greeting")
        data += more
    return data


def greet(connection, secret: bytes, me: int, you: int, seconds: float):
    """Connects as worker `me` to worker `you`; the keys.

    Raises:
        WireError: the other side does not hold the secret, or is another worker.
        TimeoutError: it does not answer.
    """
    end = time.monotonic() + seconds
    mine = os.urandom(_NONCE)
    connection.sendall(HELLO.pack(_MAGIC, mine))
    welcome = _WELCOME.unpack(_exactly(connection, _WELCOME.size, end))
    magic, local, theirs, proof = welcome
    said = _COUNT.pack(you) + bytes([local])
    known = _mac(secret, b"listener", mine, theirs, said)
    if magic != _MAGIC or not hmac.compare_digest(proof, known):
        raise WireError(f"who listens there is not worker {you} of this job")
    local = local and _stays_here(connection)
    said = _COUNT.pack(me) + _COUNT.pack(you) + bytes([local])
    proof = _mac(secret, b"caller", mine, theirs, said)
    connection.sendall(_PROOF.pack(_MAGIC, local, me, you, proof))
    return Keys(*_keys(secret, mine, theirs), local)


def answer(connection: socket.socket, secret: bytes, me: int, seconds: float):
    """Answers a greeting; the caller's number and the keys.

    Raises:
        WireError: the caller does not hold the secret.
        TimeoutError: it is too slow.
    """
    end = time.monotonic() + seconds
    magic, theirs = HELLO.unpack(_exactly(connection, HELLO.size, end))
    if magic != _MAGIC:
        raise WireError("the caller does not speak this protocol")
    mine = os.urandom(_NONCE)
    here = _stays_here(connection)
    said = _COUNT.pack(me) + bytes([here])
    proof = _mac(secret, b"listener", theirs, mine, said)
    connection.sendall(_WELCOME.pack(_MAGIC, here, mine, proof))
    told = _PROOF.unpack(_exactly(connection, _PROOF.size, end))
    magic, local, caller, wanted, proof = told
    said = _COUNT.pack(caller) + _COUNT.pack(wanted) + bytes([local])
    known = _mac(secret, b"caller", theirs, mine, said)
    if magic != _MAGIC or wanted != me or not hmac.compare_digest(proof, known):
        raise WireError("the caller does not belong to this job")
    to_listener, to_caller = _keys(secret, theirs, mine)
    return caller, Keys(to_caller, to_listener, local and here)


class FrameWriter:
    """Makes frames of one direction; the caller's lock keeps them in order."""

    def __init__(self, key: bytes, local: bool = False) -> None:
        self._key, self._local = key, local
        self._place = 0

    def frame(self, kind: int, number: int, parts: list[bytes]) -> list[bytes]:
        """The pieces of a frame, to be sent behind each other."""
        table = _COUNT.pack(len(parts)) + b"".join(_LENGTH.pack(len(p)) for p in parts)
        size = len(table) + sum(map(len, parts))
        head = _HEAD.pack(_MAGIC, kind, number, size)
        placed = _LENGTH.pack(self._place) + head
        self._place += 1
        digest = hmac.new(self._key, placed, hashlib.sha256)
        head += digest.digest()[:_HEAD_MAC]
        digest.update(table)
        for part in parts[:_ALWAYS_SIGNED] if self._local else parts:
            digest.update(part)
        pieces = [head + table, *parts, digest.digest()]
        return [b"".join(pieces)] if size < _BUFFER_BYTES else pieces


def check_parts(parts: list[bytes]) -> None:
    """Refuses what no frame can carry.

    Raises:
        ValueError: too many bytes or parts.
    """
    size = sum(map(len, parts))
    if size > MOST_BYTES - 8 * len(parts) - 4 or len(parts) > _MOST_PARTS:
        raise ValueError(
            f"rpc: a message of {size} bytes in {len(parts)} parts is longer than the "
            f"{MOST_BYTES} bytes in {_MOST_PARTS} parts that can be sent"
        )


class FrameReader:
    """Reads frames of one direction from a socket that blocks."""

    def __init__(self, connection, key: bytes, local: bool = False) -> None:
        self._connection = connection
        self._key, self._local = key, local
        self._place = 0
        self._buffer = bytearray(_BUFFER_BYTES)
        self._from = self._to = 0

    def read(self) -> tuple[int, int, bytearray]:
        """The next frame: kind, number and body.

        Raises:
            WireError: the connection ended, or the frame is none of the other side's.
        """
        head = self._take(_HEAD.size + _HEAD_MAC)
        placed = _LENGTH.pack(self._place) + head[: _HEAD.size]
        self._place += 1
        digest = hmac.new(self._key, placed, hashlib.sha256)
        if not hmac.compare_digest(digest.digest()[:_HEAD_MAC], head[_HEAD.size :]):
            raise WireError("a frame's head was not made by the other worker")
        magic, kind, number, size = _HEAD.unpack_from(head)
        if magic != _MAGIC or size > MOST_BYTES:
            raise WireError(f"a frame announces {size} bytes")
        body = self._take(size)
        digest.update(signed_part(body) if self._local else body)
        if not hmac.compare_digest(digest.digest(), self._take(_BODY_MAC)):
            raise WireError("a frame's body was not made by the other worker")
        return kind, number, body

    def _take(self, count: int) -> bytearray:
        """The next bytes; a new array, which the caller may keep."""
        data = bytearray(min(count, _FIRST_BYTES))
        done = 0
        while True:
            done = self._fill(data, done)
            if done == count:
                return data
            data += bytes(min(count - done, done))

    def _fill(self, data: bytearray, done: int) -> int:
        with memoryview(data) as view:
            while done < len(data):
                ready = self._to - self._from
                if not ready and len(data) - done >= _BUFFER_BYTES:
                    done += self._some(view[done:])
                    continue
                if not ready:
                    self._from, self._to = 0, self._some(self._buffer)
                    ready = self._to
                count = min(ready, len(data) - done)
                view[done : done + count] = self._buffer[
                    self._from : self._from + count
                ]
                self._from += count
                done += count
        return done

    def _some(self, into) -> int:
        count = self._connection.recv_into(into)
        if not count:
            raise WireError("the connection was closed")
        return count


def signed_part(body: bytearray) -> memoryview:
    """What is signed of a body on one machine: all but the bytes of tensors."""
    view = memoryview(body)
    if len(view) < _COUNT.size:
        return view
    (count,) = _COUNT.unpack_from(view)
    size = _COUNT.size + count * _LENGTH.size
    if count <= _ALWAYS_SIGNED or size > len(view):
        return view
    for index in range(_ALWAYS_SIGNED):
        size += _LENGTH.unpack_from(view, _COUNT.size + index * _LENGTH.size)[0]
    return view[:size]


def split(body: bytearray) -> list[memoryview]:
    """The parts of a body.

    Raises:
        WireError: the lengths are not those of the body.
    """
    view = memoryview(body)
    if len(view) < _COUNT.size:
        raise WireError(f"a body of {len(view)} bytes has no number of parts")
    (count,) = _COUNT.unpack_from(view)
    start = _COUNT.size + count * _LENGTH.size
    if count > _MOST_PARTS or start > len(view):
        raise WireError(f"a body of {len(view)} bytes announces {count} parts")
    parts = []
    for index in range(count):
        (size,) = _LENGTH.unpack_from(view, _COUNT.size + index * _LENGTH.size)
        if size > len(view) - start:
            raise WireError(f"part {index} announces {size} bytes")
        parts.append(view[start : start + size])
        start += size
    if start != len(view):
        raise WireError(f"{len(view) - start} bytes belong to no part")
    return parts
