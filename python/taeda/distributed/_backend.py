"""What a backend is asked by `ProcessGroup`."""

from __future__ import annotations

from datetime import timedelta

from ._work import Work, Works

__all__ = ["GroupBackend"]


class GroupBackend:
    """Collectives of one kind of device; base class of backends in Python.

    What a backend does not define raises NotImplementedError, which names it. Tensors
    come in lists of one, options as `taeda.distributed` defines them.

    Args:
        rank: this process's number in the group.
        size: how many ranks it has.
    """

    supports_splitting = False
    supports_coalescing = False
    # Whether ranks may leave the group, now or once it was aborted, and whether
    # collectives' times can be told.
    supports_shrinking = False
    shrinks_when_aborted = False
    supports_time_estimate = False
    # Whether its calls are in the flight record, so that ranks can tell of them.
    keeps_record = False

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return self.getBackendName()

    def getBackendName(self) -> str:
        """The backend's name."""
        return "undefined"

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"{what}: the backend {self.getBackendName()} does not support it"
        )

    def _unsupported(self, what: str) -> RuntimeError:
        """What a kind of backend cannot do, by the name that PyTorch gives it."""
        return RuntimeError(f"Backend {self.getBackendName()} does not support {what}")

    def supports_tensor_alloc(self, device) -> bool:
        """Whether tensors can be made in memory that the backend holds: no."""
        return False

    @property
    def mem_allocator(self):
        """An allocator of the backend's own memory."""
        raise self._unsupported("getMemAllocator")

    def allocate_tensor(self, size: int, *, dtype, device):
        """A tensor in memory that the backend holds."""
        raise self._unsupported("allocateTensor")

    def memory_stats(self) -> dict[str, int]:
        """What the backend says of its memory."""
        raise self._unsupported("getMemoryStats")

    def suspend(self) -> None:
        """Gives the backend's memory back until `resume`."""
        raise self._unsupported("suspend")

    def resume(self) -> None:
        """Undoes `suspend`."""
        raise self._unsupported("resume")

    def shrink(self, ranks_to_exclude, shrink_flags: int = 0, opts_override=None):
        """A backend of the other ranks; all of them call it.

        Args:
            ranks_to_exclude: ranks of this group that are lost or not wanted.
            shrink_flags: 1 ends what runs in this group with an error first.
            opts_override: what the backend takes, in place of its own.
        """
        raise self._unsupported("shrink")

    def _left(self, excluded) -> tuple[str, int, int]:
        """A name for those who are left of this group, this rank's place, how many."""
        name = "_".join(map(str, sorted(excluded)))
        ranks = [r for r in range(self._size) if r not in excluded]
        return name, ranks.index(self._rank), len(ranks)

    def allreduce(self, tensors, opts) -> Work:
        raise self._lacks("all_reduce")

    def broadcast(self, tensors, opts) -> Work:
        raise self._lacks("broadcast")

    def reduce(self, tensors, opts) -> Work:
        raise self._lacks("reduce")

    def allgather(self, output_tensors, input_tensors, opts) -> Work:
        raise self._lacks("all_gather")

    def _allgather_base(self, output, input, opts) -> Work:
        raise self._lacks("all_gather_into_tensor")

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        raise self._lacks("gather")

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        raise self._lacks("scatter")

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        raise self._lacks("reduce_scatter")

    def _reduce_scatter_base(self, output, input, opts) -> Work:
        raise self._lacks("reduce_scatter_tensor")

    def alltoall(self, output_tensors, input_tensors, opts) -> Work:
        raise self._lacks("all_to_all")

    def alltoall_base(self, output, input, output_splits, input_splits, opts) -> Work:
        raise self._lacks("all_to_all_single")

    def barrier(self, opts) -> Work:
        raise self._lacks("barrier")

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        raise self._lacks("monitored_barrier")

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        raise self._lacks("send")

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        raise self._lacks("recv")

    def recv_anysource(self, tensors, tag: int) -> Work:
        raise self._lacks("recv")

    # Several at once, made of the above.

    def allreduce_coalesced(self, tensors, opts) -> Work:
        """Reduces several tensors."""
        opts.asyncOp = True
        works = [self.allreduce([tensor], opts) for tensor in tensors]
        return Works(works, list(tensors))

    def allgather_coalesced(self, output_lists, input_list, opts) -> Work:
        """`output_lists[r][i]` receives entry i of rank r's list."""
        opts.asyncOp = True
        works = [
            self.allgather([[outs[i] for outs in output_lists]], [tensor], opts)
            for i, tensor in enumerate(input_list)
        ]
        return Works(works, list(output_lists))

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts) -> Work:
        """Gathers several tensors, each into one."""
        opts.asyncOp = True
        works = [
            self._allgather_base(out, tensor, opts)
            for out, tensor in zip(outputs, inputs, strict=True)
        ]
        return Works(works, list(outputs))

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts) -> Work:
        """Reduces several tensors; each rank gets its parts."""
        opts.asyncOp = True
        works = [
            self._reduce_scatter_base(out, tensor, opts)
            for out, tensor in zip(outputs, inputs, strict=True)
        ]
        return Works(works, list(outputs))

    def set_timeout(self, timeout: timedelta) -> None:
        """The limit of operations from now on."""

    def abort(self) -> None:
        """Ends what is running with an error."""

    def shutdown(self) -> None:
        """Waits for what is running."""

    def _get_sequence_number_for_group(self) -> int:
        raise self._lacks("sequence numbers")
