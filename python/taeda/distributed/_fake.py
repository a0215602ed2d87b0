"""A backend without processes: plans of any size on one machine.

`init_process_group("fake", rank=0, world_size=8, store=FakeStore())` lets a program run
as one rank of many. Nothing is sent: outputs receive this rank's own tensors where a
shape asks for them.
"""

from __future__ import annotations

import taeda
from taeda._distributed import Store

from ._backend import GroupBackend
from ._work import DoneWork, Work

__all__ = ["FakeBackend", "FakeStore"]


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


class FakeBackend(GroupBackend):
    """Collectives that end at once."""

    def getBackendName(self) -> str:
        return "fake"

    @staticmethod
    def _fill(outputs, tensor) -> None:
        with taeda.no_grad():
            for out in outputs:
                out.copy_(tensor)

    def allreduce(self, tensors, opts) -> Work:
        return DoneWork(tensors)

    def broadcast(self, tensors, opts) -> Work:
        return DoneWork(tensors)

    def reduce(self, tensors, opts) -> Work:
        return DoneWork(tensors)

    def allgather(self, output_tensors, input_tensors, opts) -> Work:
        self._fill(output_tensors[0], input_tensors[0])
        return DoneWork(output_tensors)

    def _allgather_base(self, output, input, opts) -> Work:
        self._fill(output.view(self._size, -1), input.reshape(-1))
        return DoneWork([output])

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        if output_tensors:
            self._fill(output_tensors[0], input_tensors[0])
        return DoneWork(output_tensors)

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        if input_tensors:
            self._fill(output_tensors, input_tensors[0][self._rank])
        return DoneWork(output_tensors)

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        self._fill(output_tensors, input_tensors[0][self._rank])
        return DoneWork(output_tensors)

    def _reduce_scatter_base(self, output, input, opts) -> Work:
        self._fill([output.view(-1)], input.reshape(self._size, -1)[self._rank])
        return DoneWork([output])

    def alltoall(self, output_tensors, input_tensors, opts) -> Work:
        for out, tensor in zip(output_tensors, input_tensors, strict=True):
            if out.shape == tensor.shape:
                self._fill([out], tensor)
        return DoneWork(output_tensors)

    def alltoall_base(self, output, input, output_splits, input_splits, opts) -> Work:
        if output.shape == input.shape:
            self._fill([output], input)
        return DoneWork([output])

    def barrier(self, opts) -> Work:
        return DoneWork()

    def monitored_barrier(self, timeout=None, wait_all_ranks=False) -> None:
        pass

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        return DoneWork(tensors)

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        return DoneWork(tensors)

    def recv_anysource(self, tensors, tag: int) -> Work:
        return DoneWork(tensors)

    def _get_sequence_number_for_group(self) -> int:
        return 0
