"""A backend without processes: plans of any size on one machine.

`init_process_group("fake", rank=0, world_size=8, store=FakeStore())` lets a program run
as one rank of many. Nothing is sent: outputs receive this rank's own tensors where a
shape asks for them. `FakeRecord` keeps what was asked, for `tools/simulate`.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass
from datetime import timedelta

import taeda
from taeda._distributed import Store

from ._backend import GroupBackend
from ._work import DoneWork, Work

__all__ = ["FakeBackend", "FakeCall", "FakeRecord", "FakeStore"]


class FakeStore(Store):
    """A store that has everything and keeps nothing."""

    def set(self, key, value) -> None:
        pass

    def get(self, key) -> bytes:
        return b""

    def add(self, key, amount) -> int:
        return amount

    def wait(self, keys, timeout=None) -> None:
        pass

    def check(self, keys) -> bool:
        return True


@dataclass(frozen=True)
class FakeCall:
    """A collective that was called, or ("wait") whose end was waited for.

    `bytes` are those of the whole: what all ranks have after a gather, or give to a
    reduction or a scatter. `begin` and `end` are seconds of `time.perf_counter` around
    the call; the time between two entries is the program's own. `later` is of a call
    with `async_op`.
    """

    kind: str
    number: int
    group: str
    size: int
    bytes: int
    begin: float
    end: float
    peer: int = -1  # of a message
    later: bool = False


class FakeRecord:
    """What the fake groups of this process were asked, in order.

    Example:
        >>> with FakeRecord() as record:
        ...     step()
        >>> [call.kind for call in record.calls]
    """

    # The records that are open; the lock guards it, calls come from any thread.
    _open: list[FakeRecord] = []
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.calls: list[FakeCall] = []

    def __enter__(self) -> FakeRecord:
        with self._lock:
            self._open.append(self)
        return self

    def __exit__(self, *_error) -> None:
        with self._lock:
            self._open.remove(self)

    @classmethod
    def note(cls, call: FakeCall) -> None:
        """Adds a call to all records that are open."""
        with cls._lock:
            for record in cls._open:
                record.calls.append(call)


class _Recorded(DoneWork):
    """A work that tells the records when it is waited for."""

    def __init__(self, outputs: list | None, call: FakeCall, backend) -> None:
        super().__init__(outputs)
        self._call, self._backend = call, backend

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        call, begin = self._call, time.perf_counter()
        self._backend._waits(call.number)
        place, end = (call.group, call.size), time.perf_counter()
        FakeRecord.note(FakeCall("wait", call.number, *place, 0, begin, end))
        return True


def _bytes(tensor) -> int:
    return tensor.numel() * tensor.element_size()


class FakeBackend(GroupBackend):
    """Collectives that end at once.

    Args:
        rank, size: this process's place in the group.
        group_name: what records call the group.
    """

    # Of all groups: `next` is one step of Python's.
    _numbers = itertools.count(1)

    def __init__(self, rank: int, size: int, group_name: str = "") -> None:
        super().__init__(rank, size)
        self._group_name = group_name

    def getBackendName(self) -> str:
        return "fake"

    def _begins(self, kind: str, number: int, peer: int) -> None:
        """Called with each call; the time is not the program's own."""

    def _waits(self, number: int) -> None:
        """Called in place of waiting for a call; the time is not the program's own."""

    def _done(
        self, kind, whole: int, outputs=None, fill=(), peer=-1, opts=None
    ) -> Work:
        """Fills (outputs, tensor) pairs, and a work that has ended.

        Args:
            whole: bytes of the whole.
        """
        begin = time.perf_counter()
        with taeda.no_grad():
            for outs, tensor in fill:
                for out in outs:
                    out.copy_(tensor)
        number, place = next(self._numbers), (self._group_name, self._size)
        self._begins(kind, number, peer)
        # Messages have no options: they never wait by themselves.
        later = opts.asyncOp if opts is not None else True
        end = time.perf_counter()
        call = FakeCall(kind, number, *place, whole, begin, end, peer, later)
        FakeRecord.note(call)
        return _Recorded(outputs, call, self)

    def allreduce(self, tensors, opts) -> Work:
        return self._done("all_reduce", _bytes(tensors[0]), tensors, opts=opts)

    def broadcast(self, tensors, opts) -> Work:
        return self._done("broadcast", _bytes(tensors[0]), tensors, opts=opts)

    def reduce(self, tensors, opts) -> Work:
        return self._done("reduce", _bytes(tensors[0]), tensors, opts=opts)

    def allgather(self, output_tensors, input_tensors, opts) -> Work:
        mine = input_tensors[0]
        pairs = [(output_tensors[0], mine)]
        whole = self._size * _bytes(mine)
        return self._done("all_gather", whole, output_tensors, pairs, opts=opts)

    def _allgather_base(self, output, input, opts) -> Work:
        pairs = [(output.view(self._size, -1), input.reshape(-1))]
        return self._done("all_gather", _bytes(output), [output], pairs, opts=opts)

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        mine = input_tensors[0]
        pairs = [(output_tensors[0], mine)] if output_tensors else []
        return self._done(
            "gather", self._size * _bytes(mine), output_tensors, pairs, opts=opts
        )

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        whole = self._size * _bytes(output_tensors[0])
        pairs = []
        if input_tensors:
            pairs = [(output_tensors, input_tensors[0][self._rank])]
        return self._done("scatter", whole, output_tensors, pairs, opts=opts)

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        whole = self._size * _bytes(output_tensors[0])
        pairs = [(output_tensors, input_tensors[0][self._rank])]
        return self._done("reduce_scatter", whole, output_tensors, pairs, opts=opts)

    def _reduce_scatter_base(self, output, input, opts) -> Work:
        mine = input.reshape(self._size, -1)[self._rank]
        pairs = [([output.view(-1)], mine)]
        return self._done("reduce_scatter", _bytes(input), [output], pairs, opts=opts)

    def alltoall(self, output_tensors, input_tensors, opts) -> Work:
        whole = sum(map(_bytes, input_tensors))
        pairs = [
            ([out], tensor)
            for out, tensor in zip(output_tensors, input_tensors, strict=True)
            if out.shape == tensor.shape
        ]
        return self._done("all_to_all", whole, output_tensors, pairs, opts=opts)

    def alltoall_base(self, output, input, output_splits, input_splits, opts) -> Work:
        pairs = [([output], input)] if output.shape == input.shape else []
        return self._done("all_to_all", _bytes(input), [output], pairs, opts=opts)

    def barrier(self, opts) -> Work:
        return self._done("barrier", 0, opts=opts)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False) -> None:
        pass

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        return self._done("send", _bytes(tensors[0]), tensors, peer=dstRank)

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        return self._done("recv", _bytes(tensors[0]), tensors, peer=srcRank)

    def recv_anysource(self, tensors, tag: int) -> Work:
        return self._done("recv", _bytes(tensors[0]), tensors)

    def _get_sequence_number_for_group(self) -> int:
        return 0
