"""Messages to a worker of remote calls: strangers', damaged, and hostile with the key.

Whatever comes, the worker goes on: it runs nothing that was not sent as it should be,
takes no more memory than came, and answers the next call. An input is a connection to
the worker and `FRAMES` damaged frames that a reader alone is given.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import resource
import socket
import struct
import sys
import tempfile
import threading

from costs import SANITIZED
from harness import main, mutate
from taeda.distributed import rpc
from taeda.distributed.rpc import _wire, api
from taeda.distributed.rpc._listener import connect

FRAMES = 19
MOST_GROWTH = 64 << 20  # bytes; a batch of a thousand messages sends less than 4 MiB
ENDS = [0, 1, 255, 2**16, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]
_executed = threading.Event()


def execute() -> None:
    """What a stranger would like to call."""
    _executed.set()


def nothing() -> int:
    return 1


class _Worker:
    """The one worker of a job, in this process."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp()
        options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{folder}/job")
        rpc.init_rpc("w0", rank=0, world_size=1, rpc_backend_options=options)
        self.agent = api._agent()
        self.address = self.agent.directory.address(0)
        self.secret = self.agent._secret
        self.before = None
        self.count = 0

    def check(self) -> None:
        """Nothing was run, memory has not grown, and calls are answered."""
        if _executed.is_set():
            raise AssertionError("a stranger's function was run")
        self.count += 1
        if self.count % 50 == 1:
            if rpc.rpc_sync("w0", nothing, timeout=20) != 1:
                raise AssertionError("a call came back wrong")
            now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            self.before = self.before or now
            if not SANITIZED and now > self.before + MOST_GROWTH:
                raise AssertionError(f"memory grew from {self.before} to {now} bytes")


_worker: _Worker | None = (
    None  # Made by each child of the harness, which has one thread.
)
_quiet = open("/dev/null", "w")

CALL = pickle.dumps((execute, (), {}))


def _body(parts: list[bytes]) -> bytes:
    table = struct.pack(">I", len(parts))
    table += b"".join(struct.pack(">Q", len(part)) for part in parts)
    return table + b"".join(parts)


def _stranger(source: random.Random) -> bool:
    """Bytes from somebody without the secret: noise, or a greeting with another."""
    wrong = source.randbytes(32)
    with socket.create_connection(_worker.address, timeout=20) as link:
        if source.random() < 0.5:
            start = source.choice([b"", b"TRP1", _frame(wrong, 0, 1, [b"", CALL])])
            data = start + source.randbytes(source.choice([0, 1, 35, 36, 200, 5000]))
            with contextlib.suppress(OSError):
                link.sendall(data)
            return False
        try:
            keys = _wire.greet(link, wrong, 0, 0, 20)
        except OSError:
            return False
    raise AssertionError(f"a stranger was let in with {keys}")


def _frame(key: bytes, place: int, kind: int, parts: list[bytes]) -> bytes:
    writer = _wire.FrameWriter(key)
    writer._place = place
    return b"".join(writer.frame(kind, 5, parts))


def _damaged(source: random.Random) -> bool:
    """A call that was changed on its way, or sent in another place."""
    link, keys = connect(_worker.address, _worker.secret, 0, 0, 20)
    with link:
        place = source.choice([0, 0, 0, 1, 7])
        data = _frame(keys[0], place, source.choice([1, 2]), [b"", CALL])
        changed = mutate(data, source) if place == 0 else data
        if changed[: len(data)] == data and place == 0:
            return False
        with contextlib.suppress(OSError):
            link.sendall(changed)
            link.shutdown(socket.SHUT_WR)
            while link.recv(4096):
                pass
    return False


class _Bytes:
    """A socket from which some bytes come, and then the end."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def recv_into(self, into) -> int:
        count = min(len(into), len(self._data))
        into[:count] = self._data[:count]
        self._data = self._data[count:]
        return count


def _damaged_frame(source: random.Random) -> None:
    """No frame but the one that was made comes out of a reader."""
    key = source.randbytes(32)
    frames = [(k, source.randbytes(source.choice([0, 9, 300]))) for k in (1, 3)]
    writer = _wire.FrameWriter(key)
    data = b"".join(b"".join(writer.frame(k, 5, [b])) for k, b in frames)
    reader = _wire.FrameReader(_Bytes(mutate(data, source)), key)
    read = []
    with contextlib.suppress(_wire.WireError):
        while True:
            kind, number, body = reader.read()
            read.append((kind, bytes(_wire.split(body)[0])))
            if number != 5 or read != frames[: len(read)]:
                raise AssertionError(f"{read} came out of {frames}")


def _value(source: random.Random):
    return source.choice([None, [], b"", -1, 2**70, "x", (1, 2), {"a": 1}, 1.5, [None]])


def _note(source: random.Random) -> bytes:
    """What a message says of itself, mostly of the right form."""
    numbers = [0, -1, 3, 10**9, 2**70, None]
    tensor = (
        source.choice(["float32", None, 7]),
        tuple(source.choice(numbers) for _ in range(source.randrange(3))),
        tuple(source.choice(numbers) for _ in range(source.randrange(3))),
        source.choice([True, False, None]),
    )
    note = [
        _value(source),
        source.choice([None, None, 1 << 48, 5, -1]),
        source.choice(numbers),
        source.choice([[], [0], [9], None]),
        source.choice([[], [tensor], [tensor] * 3, None]),
    ]
    return pickle.dumps(tuple(note[: source.choice([5, 5, 5, 4, 0])]))


def _hostile(source: random.Random) -> bool:
    """A signed frame that says what is not so; the worker may only refuse it."""
    link, keys = connect(_worker.address, _worker.secret, 0, 0, 20)
    call = pickle.dumps((nothing, source.choice([(), None, 1]), {}))
    parts = [source.choice([b"", _note(source)]), source.choice([call, b"", b"\x80"])]
    parts += [source.randbytes(source.choice([0, 1, 12]))] * source.choice([0, 0, 1, 3])
    body = bytearray(_body(parts))
    kind = source.choice([1, 1, 1, 2, 3, 4, 5, 0, 77, 255])
    with link:
        if source.random() < 0.3:
            at = 4 + 8 * source.randrange(2)
            body[at : at + 8] = source.choice(ENDS).to_bytes(8, "big")
        if source.random() < 0.1:
            body[0:4] = source.choice(ENDS[:6]).to_bytes(4, "big")
        data = _signed(keys[0], kind, bytes(body), source)
        with contextlib.suppress(OSError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            link.settimeout(20)
            link.recv(4096)
    return True


def _signed(key: bytes, kind: int, body: bytes, source: random.Random) -> bytes:
    """A frame of any body, whose head may announce another length."""
    import hashlib
    import hmac

    size = source.choice(ENDS) if source.random() < 0.2 else len(body)
    head = _wire._HEAD.pack(b"TRP1", kind, 5, size)
    digest = hmac.new(key, struct.pack(">Q", 0) + head, hashlib.sha256)
    head += digest.digest()[:16]
    digest.update(_wire.signed_part(bytearray(body)))
    return head + body + digest.digest()


def attempt(source: random.Random) -> bool:
    global _worker
    # Refusals are told there, each with its traceback.
    sys.stderr = _quiet
    try:
        _worker = _worker or _Worker()
        found = source.choice([_stranger, _damaged, _hostile])(source)
        for _ in range(FRAMES):
            _damaged_frame(source)
        _worker.check()
    except BaseException:
        sys.stderr = sys.__stderr__
        raise
    return found


if __name__ == "__main__":
    sys.exit(main("fuzz_rpc", attempt))
