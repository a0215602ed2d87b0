"""The backend of the CPU: collectives of `taeda._distributed`."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import taeda
from taeda import _distributed as native

from ._backend import GroupBackend
from ._types import DistBackendError, PrefixStore, ReduceOp
from ._work import DoneWork, NativeWork, Work
from .constants import default_pg_timeout

__all__ = ["ProcessGroupGloo"]

# Tags with this bit are of monitored_barrier; those of programs are below it.
_MONITOR = 1 << 63
_ALL_RANKS = "same as size of the process group"


def _check(condition: bool, where: str, text: str) -> None:
    if not condition:
        raise RuntimeError(f"{where}: {text}")


def _single(tensors, where: str):
    _check(len(tensors) == 1, where, f"expected one tensor, got {len(tensors)}")
    return tensors[0]


def _copy_back(pairs) -> None:
    with taeda.no_grad():
        for tensor, flat in pairs:
            tensor.copy_(flat)


class _Flat:
    """Contiguous stand-ins of tensors that are written; `finish` copies back."""

    def __init__(self) -> None:
        self._pairs: list = []

    def __call__(self, tensor):
        if tensor.is_contiguous():
            return tensor
        flat = tensor.detach().contiguous()
        self._pairs.append((tensor, flat))
        return flat

    def finish(self):
        return partial(_copy_back, self._pairs) if self._pairs else None


def _operation(op) -> int:
    """The number of an operation, that of SUM for PREMUL_SUM: see `_scaled`."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"reduceOp: expected a ReduceOp, got {op!r}")
    return ReduceOp.SUM.value if op.name == "PREMUL_SUM" else op.value


def _scaled(op, tensor):
    """What a rank contributes: of PREMUL_SUM a multiple."""
    if getattr(op, "name", "") != "PREMUL_SUM":
        return tensor
    return tensor.detach() * op.factor


def _same_as(tensor, others, where: str) -> None:
    for i, other in enumerate(others):
        _check(
            other.dtype == tensor.dtype,
            where,
            f"invalid tensor type at index {i} (expected {tensor.dtype}, got "
            f"{other.dtype})",
        )
        _check(
            other.shape == tensor.shape,
            where,
            f"invalid tensor size at index {i} (expected {tuple(tensor.shape)}, got "
            f"{tuple(other.shape)})",
        )


class CpuBackend(GroupBackend):
    """Collectives and messages of CPU tensors over a `taeda._distributed.Group`.

    Args:
        native: this process's part in the group.
        rank: this process's number.
        size: how many ranks there are.
        group_name: the native part's.
    """

    supports_coalescing = True
    keeps_record = True

    def __init__(self, native, rank: int, size: int, group_name: str = "") -> None:
        super().__init__(rank, size)
        self._native = native
        self._group_name = group_name
        self._monitored = 0

    def _report(self) -> str:
        """What the ranks say of a failure, to be added to its text."""
        from . import _flight

        return _flight.added(self._group_name)

    def _await(self, work, limit: timedelta) -> None:
        """Waits for a message; its own failure comes with a report."""
        try:
            self._native.wait(work, limit)
        except DistBackendError as error:
            if not work.is_completed() or self._native.has_failed:
                raise
            raise DistBackendError(f"{error}{self._report()}") from None

    def _root(self, root: int, where: str) -> int:
        inside = 0 <= root < self._size
        _check(inside, where, f"invalid root rank: {root}")
        return root

    def allreduce(self, tensors, opts) -> Work:
        tensor = _single(tensors, "allreduce")
        if tensor.layout != taeda.strided:
            return self._allreduce_sparse(tensor, opts)
        flat, op = _Flat(), _operation(opts.reduceOp)
        if opts.reduceOp.name == "PREMUL_SUM":
            tensor.detach().mul_(opts.reduceOp.factor)
        work = self._native.all_reduce(flat(tensor), op, opts.asyncOp, opts.timeout)
        return NativeWork(work, tensors, flat.finish())

    def _allreduce_sparse(self, tensor, opts) -> Work:
        """The sum of sparse tensors, from everybody's indices and values."""
        op = opts.reduceOp
        if op != ReduceOp.SUM:
            raise RuntimeError(f"all_reduce: sparse tensors can be summed, not {op}")
        mine = tensor.coalesce()
        indices, values = mine.indices(), mine.values()
        counts = taeda.zeros(self._size, dtype=taeda.int64)
        counts[self._rank] = values.shape[0]
        total = ReduceOp.SUM.value
        self._native.all_reduce(counts, total, False, opts.timeout)
        gathered = [
            self._gather_uneven(part, counts.tolist(), opts.timeout)
            for part in (indices.t().contiguous(), values.contiguous())
        ]
        whole = taeda.sparse_coo_tensor(gathered[0].t(), gathered[1], tensor.shape)
        with taeda.no_grad():
            tensor.copy_(whole.coalesce())
        return DoneWork([tensor])

    def _gather_uneven(self, part, counts: list[int], timeout):
        """The ranks' rows below each other; `counts` says how many each has."""
        rows = [part.new_zeros((n, *part.shape[1:])) for n in counts]
        own = [part for _ in counts]
        self._native.all_to_all(rows, own, False, timeout)
        return taeda.cat(rows)

    def broadcast(self, tensors, opts) -> Work:
        tensor, flat = _single(tensors, "broadcast"), _Flat()
        root = self._root(opts.rootRank, "broadcast")
        work = self._native.broadcast(flat(tensor), root, opts.asyncOp, opts.timeout)
        return NativeWork(work, tensors, flat.finish())

    def reduce(self, tensors, opts) -> Work:
        tensor, flat = _single(tensors, "reduce"), _Flat()
        root, op = self._root(opts.rootRank, "reduce"), _operation(opts.reduceOp)
        if opts.reduceOp.name == "PREMUL_SUM":
            tensor.detach().mul_(opts.reduceOp.factor)
        work = self._native.reduce(flat(tensor), root, op, opts.asyncOp, opts.timeout)
        return NativeWork(work, tensors, flat.finish())

    def allgather(self, output_tensors, input_tensors, opts) -> Work:
        tensor = _single(input_tensors, "allgather")
        outputs, flat = _single(output_tensors, "allgather"), _Flat()
        _check(
            len(outputs) == self._size,
            "allgather",
            "invalid output tensor list at index 0 "
            f"(expected length {self._size}, got {len(outputs)})",
        )
        _same_as(tensor, outputs, "allgather")
        work = self._native.all_gather(
            [flat(out) for out in outputs],
            tensor.detach().contiguous(),
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, output_tensors, flat.finish())

    def _allgather_base(self, output, input, opts) -> Work:
        _check(
            output.dtype == input.dtype,
            "allgather",
            f"expected an output of {input.dtype}, got {output.dtype}",
        )
        _check(
            output.numel() == input.numel() * self._size,
            "allgather",
            f"expected an output of {input.numel() * self._size} elements, got "
            f"{output.numel()}",
        )
        flat = _Flat()
        parts = flat(output).view(-1).chunk(self._size) if input.numel() else ()
        if not parts:
            parts = [output.view(-1)] * self._size
        mine = input.detach().contiguous().view(-1)
        work = self._native.all_gather(parts, mine, opts.asyncOp, opts.timeout)
        return NativeWork(work, [output], flat.finish())

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        tensor, flat = _single(input_tensors, "gather"), _Flat()
        root = self._root(opts.rootRank, "gather")
        outputs = output_tensors[0] if self._rank == root else []
        if self._rank == root:
            _check(
                len(outputs) == self._size,
                "gather",
                f"Incorrect output list size {len(outputs)}. Output list size should "
                f"be {self._size}, {_ALL_RANKS}.",
            )
            _same_as(tensor, outputs, "gather")
        work = self._native.gather(
            [flat(out) for out in outputs],
            tensor.detach().contiguous(),
            root,
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, output_tensors, flat.finish())

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        output, flat = _single(output_tensors, "scatter"), _Flat()
        root = self._root(opts.rootRank, "scatter")
        inputs = input_tensors[0] if self._rank == root else []
        if self._rank == root:
            _check(
                len(inputs) == self._size,
                "scatter",
                f"Incorrect input list size {len(inputs)}. Input list size should be "
                f"{self._size}, {_ALL_RANKS}.",
            )
            _same_as(output, inputs, "scatter")
        work = self._native.scatter(
            flat(output),
            [part.detach().contiguous() for part in inputs],
            root,
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, output_tensors, flat.finish())

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        output, flat = _single(output_tensors, "reduce_scatter"), _Flat()
        inputs = _single(input_tensors, "reduce_scatter")
        _check(
            len(inputs) == self._size,
            "reduce_scatter",
            f"invalid input tensor list size {len(inputs)}, must be world size "
            f"{self._size}",
        )
        _same_as(output, inputs, "reduce_scatter")
        work = self._native.reduce_scatter(
            flat(output),
            [_scaled(opts.reduceOp, p).detach().contiguous() for p in inputs],
            _operation(opts.reduceOp),
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, output_tensors, flat.finish())

    def _reduce_scatter_base(self, output, input, opts) -> Work:
        _check(
            output.dtype == input.dtype,
            "reduce_scatter",
            f"expected an output of {input.dtype}, got {output.dtype}",
        )
        _check(
            output.numel() * self._size == input.numel(),
            "reduce_scatter",
            f"expected an input of {output.numel() * self._size} elements, got "
            f"{input.numel()}",
        )
        flat = _Flat()
        whole = _scaled(opts.reduceOp, input).detach().contiguous().view(-1)
        parts = whole.chunk(self._size) if input.numel() else [whole] * self._size
        work = self._native.reduce_scatter(
            flat(output).view(-1),
            parts,
            _operation(opts.reduceOp),
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, [output], flat.finish())

    def alltoall(self, output_tensors, input_tensors, opts) -> Work:
        for name, tensors in (("input", input_tensors), ("output", output_tensors)):
            _check(
                len(tensors) == self._size,
                "alltoall",
                f"{name} tensor list size {len(tensors)} does not match world size "
                f"{self._size}",
            )
        flat = _Flat()
        work = self._native.all_to_all(
            [flat(out) for out in output_tensors],
            [part.detach().contiguous() for part in input_tensors],
            opts.asyncOp,
            opts.timeout,
        )
        return NativeWork(work, output_tensors, flat.finish())

    def _parts(self, tensor, splits, name: str):
        """A tensor's parts along the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            _check(
                rows % self._size == 0,
                "alltoall_base",
                f"the {name}'s first dimension, {rows}, is not divisible by "
                f"{self._size} ranks",
            )
            splits = [rows // self._size] * self._size
        _check(
            len(splits) == self._size and sum(splits) == rows,
            "alltoall_base",
            f"Split sizes doesn't match total dim 0 size: {list(splits)} of {rows}",
        )
        return tensor.split(list(splits))

    def alltoall_base(self, output, input, output_splits, input_splits, opts) -> Work:
        flat = _Flat()
        outputs = self._parts(flat(output), output_splits, "output")
        inputs = self._parts(input.detach().contiguous(), input_splits, "input")
        work = self._native.all_to_all(outputs, inputs, opts.asyncOp, opts.timeout)
        return NativeWork(work, [output], flat.finish())

    def barrier(self, opts) -> Work:
        return NativeWork(self._native.barrier(opts.asyncOp, opts.timeout), [])

    # Messages.

    def _message(self, tensors, tag: int, where: str):
        tensor = _single(tensors, where)
        _check(tag >= 0, where, f"Tag must be nonnegative, got {tag}")
        _check(tensor.is_contiguous(), where, "the tensor has to be contiguous")
        return tensor

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        tensor = self._message(tensors, tag, "send")
        self._root(dstRank, "send")
        work = self._native.send(tensor, dstRank, tag, None)
        return NativeWork(work, tensors, waiter=self._await)

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        tensor = self._message(tensors, tag, "recv")
        self._root(srcRank, "recv")
        work = self._native.receive(tensor, srcRank, tag, None)
        return NativeWork(work, tensors, waiter=self._await)

    def recv_anysource(self, tensors, tag: int) -> Work:
        tensor = self._message(tensors, tag, "recv")
        work = self._native.receive(tensor, -1, tag, None)
        return NativeWork(work, tensors, waiter=self._await)

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier over messages: rank 0 hears of each other rank, then answers.

        Raises:
            RuntimeError: names the ranks that did not come, at rank 0.
        """
        limit = timeout or self._native.timeout
        tag = _MONITOR | self._monitored
        self._monitored += 1
        if self._rank == 0:
            self._monitor(limit, tag, wait_all_ranks)
            return
        token = taeda.zeros(1, dtype=taeda.uint8)
        self._native.send(token, 0, tag, limit)
        answer = self._native.receive(token, 0, tag, limit)
        try:
            self._native.wait(answer, limit)
        except RuntimeError as error:
            raise RuntimeError(
                f"Rank {self._rank} was not released by rank 0 from monitoredBarrier "
                f"in {limit / timedelta(milliseconds=1):g} ms: {error}"
            ) from None

    def _monitor(self, limit: timedelta, tag: int, wait_all_ranks: bool) -> None:
        from time import monotonic

        end = monotonic() + limit.total_seconds()
        tokens = [taeda.zeros(1, dtype=taeda.uint8) for _ in range(self._size)]
        others = range(1, self._size)
        works = {r: self._native.receive(tokens[r], r, tag, limit) for r in others}
        missing = []
        for rank, work in works.items():
            left = timedelta(seconds=max(0.001, end - monotonic()))
            try:
                self._native.wait(work, left)
            except RuntimeError:
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if missing:
            self._report()  # to the log: the text names those who are missing alone
            ranks = ", ".join(map(str, missing))
            word = "Ranks" if len(missing) > 1 else "Rank"
            raise RuntimeError(
                f"{word} {ranks} failed to pass monitoredBarrier in "
                f"{limit / timedelta(milliseconds=1):g} ms"
            )
        for rank in others:
            self._native.send(tokens[rank], rank, tag, limit)

    def set_timeout(self, timeout: timedelta) -> None:
        self._native.timeout = timeout

    def abort(self) -> None:
        self._native.abort("the group was aborted")

    def shutdown(self) -> None:
        self._native.shut_down()

    def _get_sequence_number_for_group(self) -> int:
        return self._native.sequence


class ProcessGroupGloo(CpuBackend):
    """Collectives of CPU tensors: through shared memory on one host, else Gloo.

    Args:
        store: where the ranks meet.
        rank: this process's number.
        size: how many ranks there are.
        timeout: of each operation.
        group_name: what errors and the flight record call the group.
        route: "shared" or "gloo" for that way alone.

    Raises:
        DistStoreError: ranks do not come in time.
        DistBackendError: the ranks are on several hosts and there is no Gloo.
    """

    def __init__(
        self,
        store,
        rank: int,
        size: int,
        timeout: timedelta = default_pg_timeout,
        *,
        group_name: str = "",
        route: str = "",
    ) -> None:
        group = native.Group(rank, size, group_name, store, timeout, route)
        super().__init__(group, rank, size, group_name)
        self._store, self._route = store, route

    def getBackendName(self) -> str:
        return "gloo"

    shrinks_when_aborted = True

    @property
    def supports_shrinking(self) -> bool:  # type: ignore[override]
        """Whether the group is over, so that those who are left can make another."""
        return self._native.has_failed

    def shrink(self, ranks_to_exclude, shrink_flags: int = 0, opts_override=None):
        # Between hosts, ranks that have not heard of the failure hear of it by this.
        self.abort()
        name, *place = self._left(ranks_to_exclude)
        return ProcessGroupGloo(
            PrefixStore(f"without {name}/", self._store),
            *place,
            self._native.timeout,
            group_name=f"{self._group_name}~{name}",
            route=self._route,
        )
