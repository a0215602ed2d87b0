"""The backend "nccl": collectives of CUDA tensors, on streams of their own."""

from __future__ import annotations

import contextlib
import ctypes
from datetime import timedelta

import taeda
from taeda import _distributed as native

from . import _nccl_library as nccl
from ._backend import GroupBackend
from ._nccl_library import Communicator, Config
from ._nccl_work import NcclWork, Watchdog, switch
from ._types import DistBackendError, DistStoreError, PrefixStore, ReduceOp
from ._work import Work

__all__ = ["ProcessGroupNCCL"]

# Of a collective, where the program names none.
NCCL_LIMIT = timedelta(minutes=10)


def _contiguous(tensor, where: str):
    if tensor.device.type != "cuda":
        raise ValueError(
            f"{where}: Tensors must be CUDA and dense, got {tensor.device}"
        )
    if not tensor.is_contiguous():
        raise ValueError(f"{where}: Tensors must be contiguous")
    return tensor


def _number_type(tensor, where: str):
    """A tensor as NCCL reduces it: complex values are pairs, bools bytes."""
    if tensor.is_complex():
        tensor = taeda.view_as_real(tensor)
    if tensor.dtype == taeda.bool:
        tensor = tensor.view(taeda.uint8)
    if tensor.dtype not in nccl.DTYPES:
        raise TypeError(
            f"{where}: Input tensor data type is not supported for NCCL "
            f"process group: {tensor.dtype}"
        )
    return tensor


def _bytes(tensor) -> int:
    return tensor.numel() * tensor.element_size()


class _Options:
    """How a group over NCCL is made.

    Args:
        is_high_priority_stream: whether its work goes before other streams'.
    """

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self.config = Config()
        self.split_from: ProcessGroupNCCL | None = None
        self.split_color = 0
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""
        self._timeout = NCCL_LIMIT

    @property
    def backend(self) -> str:
        """The backend's name."""
        return "nccl"


class ProcessGroupNCCL(GroupBackend):
    """Collectives of CUDA tensors through NCCL, in the order of a stream of its own.

    A communicator is made by the first collective on a device; ranks that do not come
    to it are named. Waiting for a work makes the current stream wait. A thread watches
    what runs: past its time, or where a rank is lost, it says where each rank stands
    and does what TORCH_NCCL_ASYNC_ERROR_HANDLING says: 0 nothing, 1 abort and end the
    process, 2 abort, 3 end the process (the default). Further switches are
    TORCH_NCCL_BLOCKING_WAIT, TORCH_NCCL_HIGH_PRIORITY, TORCH_NCCL_DUMP_ON_TIMEOUT,
    TORCH_NCCL_DEBUG_INFO_TEMP_FILE, TORCH_NCCL_USE_COMM_NONBLOCKING,
    TORCH_NCCL_ENABLE_MONITORING and TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC (a second thread
    ends a process whose first stands still), each also with TAEDA_ in place of TORCH_.

    Args:
        store: where the ranks meet.
        rank: this process's number.
        size: how many ranks there are.
        options: how communicators are made, and the limit of collectives.
        group_name: what errors and the flight record call the group.

    Raises:
        RuntimeError: NCCL is not there; the text names the package.
        ValueError: there is no GPU.
    """

    Options = _Options
    NCCLConfig = Config
    supports_coalescing = True
    supports_splitting = True
    supports_shrinking = True
    keeps_record = True

    def __init__(
        self, store, rank: int, size: int, options=None, *, group_name=""
    ) -> None:
        super().__init__(rank, size)
        nccl.library()
        if not taeda.cuda.is_available():
            raise ValueError(
                "ProcessGroupNCCL is only supported with GPUs, no GPUs found!"
            )
        self.options = options or _Options()
        self.group_name = group_name or self.options.group_name
        self._store = PrefixStore("nccl", store)
        self._timeout = self.options._timeout
        self._comms: dict[str, Communicator] = {}
        self._batch: list | None = None
        self._sequence = 0
        self._watchdog = Watchdog(self)

    def getBackendName(self) -> str:
        return "nccl"

    # Communicators.

    def _comm(self, device, peers: tuple[int, ...] = ()) -> Communicator:
        """The communicator of a device: of all ranks, or of two."""
        key = f"{device.index}:{','.join(map(str, peers))}"
        if key not in self._comms:
            self._comms[key] = self._make(device, peers)
        return self._comms[key]

    def _make(self, device, peers: tuple[int, ...]) -> Communicator:
        ranks = peers or tuple(range(self._size))
        limit = self._timeout.total_seconds()
        config, place = self._config(), (ranks.index(self._rank), len(ranks))
        high = self.options.is_high_priority_stream or switch("HIGH_PRIORITY", 0)
        with taeda.cuda.device(device):
            stream = taeda.cuda.Stream(device, priority=-1 if high else 0)
            parent = None if peers else self.options.split_from
            if parent is not None:
                color = self.options.split_color
                args = (self._rank, *place, config, limit, stream)
                return parent._comm(device).split(color, *args)
            unique = self._agree(device, ranks)
            return Communicator.join(unique, *place, config, limit, stream)

    def _config(self) -> Config:
        config = self.options.config
        if switch("USE_COMM_NONBLOCKING", 0):
            config.blocking = 0
        return config

    def _agree(self, device, ranks: tuple[int, ...]) -> bytes:
        """The first rank's unique id, when all have come.

        NCCL's own joining has no limit of time, so it begins when everybody is there.
        """
        # All ranks make the same number of communicators with each other.
        kind = ",".join(map(str, ranks)) if len(ranks) < self._size else "all"
        made = sum(key.endswith(f":{kind}") for key in self._comms)
        store = PrefixStore(f"{kind}/{made}", self._store)
        if self._rank == ranks[0]:
            key = nccl.UniqueId()
            found = nccl.library()
            found.check("ncclGetUniqueId", found.ncclGetUniqueId(ctypes.byref(key)))
            store.set("id", bytes(key).hex())
        store.set(f"here/{self._rank}", "1")
        try:
            store.wait([f"here/{r}" for r in ranks], self._timeout)
        except DistStoreError:
            missing = [r for r in ranks if not store.check([f"here/{r}"])]
            named = ", ".join(f"rank {r}" for r in missing)
            raise DistBackendError(
                f"nccl: rank {self._rank} of {self._size} in group "
                f"{self.group_name!r} waited {self._timeout.total_seconds():g} s for a "
                f"communicator on {device}; not there: {named}"
            ) from None
        return bytes.fromhex(store.get("id").decode())

    def perform_nocolor_split(self, device) -> None:
        """Takes part in a split of this group, in no part of it."""
        comm = self._comm(taeda.device(device))
        limit = self._timeout.total_seconds()
        comm.split(-1, self._rank, -1, 0, self._config(), limit, comm.stream)

    def eager_connect_single_device(self, device) -> None:
        """Makes the communicator of a device now; all ranks call it."""
        self._comm(taeda.device(device))

    # Running.

    def _run(
        self,
        kind,
        tensors,
        outputs,
        body,
        timeout,
        *,
        op=ReduceOp.SUM,
        peer=-1,
        comm=None,
        host=False,
    ) -> Work:
        """Runs `body(comm)` on the communicator's stream, behind the current one."""
        if self._watchdog.failure is not None:
            raise self._watchdog.failure
        device = tensors[0].device
        limit = timeout or self._timeout
        comm = comm or self._comm(device)
        self._sequence += 1
        size = sum(map(_bytes, tensors))
        text = (
            f"{kind} #{self._sequence} of {tensors[0].dtype}, {size} bytes at rank "
            f"{self._rank} of {self._size} in group {self.group_name!r}"
        )
        scaled = op.name == "PREMUL_SUM"
        record = native.begin_flight(
            self.group_name,
            native.KINDS[kind],
            self._sequence,
            tensors[0],
            size,
            peer,
            limit,
            ReduceOp.SUM.value if scaled else op.value,
        )
        with taeda.cuda.device(device):
            comm.stream.wait_stream(taeda.cuda.current_stream(device))
            with taeda.cuda.stream(comm.stream), taeda.no_grad():
                body(comm)
                event = taeda.cuda.Event()
                event.record(comm.stream)
        keep = (tensors, outputs)
        work = NcclWork(text, comm, event, keep, outputs, limit, record, host)
        self._watchdog.add(work)
        return work

    def _call(self, name: str, comm: Communicator, *arguments) -> None:
        library = nccl.library()
        status = getattr(library, name)(*arguments, *comm.place)
        library.check(name, status)
        if self._batch is None:
            comm._settle(name, status, self._timeout.total_seconds())

    @contextlib.contextmanager
    def _group(self, comm: Communicator):
        """Messages that NCCL moves at once."""
        library = nccl.library()
        library.check("ncclGroupStart", library.ncclGroupStart())
        yield
        status = library.ncclGroupEnd()
        library.check("ncclGroupEnd", status)
        comm._settle("ncclGroupEnd", status, self._timeout.total_seconds())

    def _operation(self, op, tensor, comm) -> int:
        if op.name == "PREMUL_SUM":
            return comm.scaled_sum(op.factor, tensor.dtype)
        if op.name == "AVG" and not tensor.dtype.is_floating_point:
            raise ValueError("Cannot use ReduceOp.AVG with integers and NCCL")
        return nccl.OPERATIONS[op.name]

    def _reduction(self, op, tensor, where: str):
        """An operation and a tensor as NCCL takes them."""
        if op.name not in (*nccl.OPERATIONS, "PREMUL_SUM"):
            raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
        if tensor.dtype == taeda.bool:
            if op.name == "AVG":
                raise TypeError("Cannot use ReduceOp.AVG with bool inputs")
            op = ReduceOp.MAX if op.name == "SUM" else op
        if tensor.is_complex() and op.name not in ("SUM", "AVG", "PREMUL_SUM"):
            raise TypeError(f"{where}: {op} has no meaning for complex values")
        return op, _number_type(_contiguous(tensor, where), where)

    # Collectives.

    def allreduce(self, tensors, opts) -> Work:
        op, x = self._reduction(opts.reduceOp, tensors[0], "all_reduce")

        def body(comm) -> None:
            at, kind = x.data_ptr(), nccl.DTYPES[x.dtype]
            number = self._operation(op, x, comm)
            self._call("ncclAllReduce", comm, at, at, x.numel(), kind, number)

        return self._run("all_reduce", [x], tensors, body, opts.timeout, op=op)

    def broadcast(self, tensors, opts) -> Work:
        x = _contiguous(tensors[0], "broadcast")

        def body(comm) -> None:
            at, count = x.data_ptr(), _bytes(x)
            self._call("ncclBroadcast", comm, at, at, count, nccl.BYTES, opts.rootRank)

        return self._run("broadcast", [x], tensors, body, opts.timeout)

    def reduce(self, tensors, opts) -> Work:
        op, x = self._reduction(opts.reduceOp, tensors[0], "reduce")

        def body(comm) -> None:
            at, kind = x.data_ptr(), nccl.DTYPES[x.dtype]
            number, root = self._operation(op, x, comm), opts.rootRank
            self._call("ncclReduce", comm, at, at, x.numel(), kind, number, root)

        return self._run("reduce", [x], tensors, body, opts.timeout, op=op)

    def _allgather_base(self, output, input, opts) -> Work:
        x = _contiguous(input, "all_gather_into_tensor")
        out = _contiguous(output, "all_gather_into_tensor")
        if out.dtype != x.dtype or out.numel() != x.numel() * self._size:
            raise ValueError(
                "output tensor size must be equal to world_size times input tensor "
                f"size, and of its type: got {tuple(out.shape)} of {out.dtype} for "
                f"{tuple(x.shape)} of {x.dtype} and {self._size} ranks"
            )

        def body(comm) -> None:
            places = x.data_ptr(), out.data_ptr(), _bytes(x)
            self._call("ncclAllGather", comm, *places, nccl.BYTES)

        return self._run("all_gather", [x, out], [output], body, opts.timeout)

    def allgather(self, output_tensors, input_tensors, opts) -> Work:
        x = _contiguous(input_tensors[0], "all_gather")
        outputs = output_tensors[0]
        if len(outputs) != self._size:
            raise ValueError(
                f"all_gather: expected {self._size} outputs, got {len(outputs)}"
            )

        def body(comm) -> None:
            if any(out.numel() != x.numel() for out in outputs):
                with self._group(comm):
                    for r, out in enumerate(outputs):
                        mine = x if r == self._rank else out
                        places = mine.data_ptr(), out.data_ptr(), _bytes(out)
                        self._call("ncclBroadcast", comm, *places, nccl.BYTES, r)
                return
            whole = x.new_empty((self._size, *x.shape))
            places = x.data_ptr(), whole.data_ptr(), _bytes(x)
            self._call("ncclAllGather", comm, *places, nccl.BYTES)
            for out, part in zip(outputs, whole.unbind(0), strict=True):
                out.copy_(part.view(out.shape))

        return self._run(
            "all_gather", [x, *outputs], output_tensors, body, opts.timeout
        )

    def _reduce_scatter_base(self, output, input, opts) -> Work:
        where = "reduce_scatter_tensor"
        op, x = self._reduction(opts.reduceOp, input, where)
        out = _number_type(_contiguous(output, where), where)
        if out.dtype != x.dtype or x.numel() != out.numel() * self._size:
            raise ValueError(
                "input tensor must be the same size as output size times world size, "
                f"and of its type: got {tuple(input.shape)} of {input.dtype} for "
                f"{tuple(output.shape)} of {output.dtype} and {self._size} ranks"
            )

        def body(comm) -> None:
            places = x.data_ptr(), out.data_ptr(), out.numel(), nccl.DTYPES[x.dtype]
            number = self._operation(op, x, comm)
            self._call("ncclReduceScatter", comm, *places, number)

        return self._run(
            "reduce_scatter", [x, out], [output], body, opts.timeout, op=op
        )

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        output, inputs = output_tensors[0], input_tensors[0]
        if len(inputs) != self._size or any(x.shape != output.shape for x in inputs):
            raise ValueError(
                f"reduce_scatter: expected {self._size} inputs of the output's shape, "
                f"{tuple(output.shape)}, got {[tuple(x.shape) for x in inputs]}"
            )
        return self._reduce_scatter_base(output, taeda.stack(inputs), opts)

    def _exchange(self, kind, keep, sends, receives, outputs, timeout) -> Work:
        """Messages of a collective: (rank, tensor) that leave and that come."""
        for _, tensor in (*sends, *receives):
            _contiguous(tensor, kind)

        def body(comm) -> None:
            with self._group(comm):
                for name, messages in ("ncclSend", sends), ("ncclRecv", receives):
                    for rank, x in messages:
                        if x.numel():
                            place = x.data_ptr(), _bytes(x), nccl.BYTES, rank
                            self._call(name, comm, *place)

        return self._run(kind, keep, outputs, body, timeout)

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        x, root = input_tensors[0], opts.rootRank
        outputs = output_tensors[0] if self._rank == root else []
        receives = list(enumerate(outputs))
        keep = [x, *outputs]
        return self._exchange(
            "gather", keep, [(root, x)], receives, output_tensors, opts.timeout
        )

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        out, root = output_tensors[0], opts.rootRank
        inputs = input_tensors[0] if self._rank == root else []
        sends = list(enumerate(inputs))
        keep = [out, *inputs]
        return self._exchange(
            "scatter", keep, sends, [(root, out)], output_tensors, opts.timeout
        )

    def alltoall(self, output_tensors, input_tensors, opts) -> Work:
        return self._exchange(
            "all_to_all",
            [*input_tensors, *output_tensors],
            list(enumerate(input_tensors)),
            list(enumerate(output_tensors)),
            output_tensors,
            opts.timeout,
        )

    def _parts(self, tensor, splits):
        """A tensor's parts along the first dimension."""
        rows = tensor.shape[0] if tensor.dim() else 1
        splits = list(splits) or [rows // self._size] * self._size
        if len(splits) != self._size or sum(splits) != rows:
            raise RuntimeError(
                f"Split sizes doesn't match total dim 0 size: {splits} of {rows}"
            )
        return list(enumerate(_contiguous(tensor, "all_to_all").split(splits)))

    def alltoall_base(self, output, input, output_splits, input_splits, opts) -> Work:
        return self._exchange(
            "all_to_all",
            [input, output],
            self._parts(input, input_splits or []),
            self._parts(output, output_splits or []),
            [output],
            opts.timeout,
        )

    def barrier(self, opts) -> Work:
        x = taeda.zeros(1, device=taeda.device("cuda", taeda.cuda.current_device()))

        def body(comm) -> None:
            at = x.data_ptr()
            self._call("ncclAllReduce", comm, at, at, 1, nccl.DTYPES[x.dtype], 0)

        return self._run("barrier", [x], [], body, opts.timeout, host=True)

    # Messages.

    def _message(self, name: str, tensors, peer: int) -> Work:
        x = _contiguous(tensors[0], name)
        if not 0 <= peer < self._size or peer == self._rank:
            raise ValueError(f"{name}: rank {self._rank} has no peer {peer}")
        if self._batch is not None:
            self._batch.append((name, x, peer))
            return Work()
        # Only these two call it: they have a communicator of their own.
        low, high = sorted((peer, self._rank))
        other = int(peer == high)
        comm = self._comm(x.device, (low, high) if self._size > 2 else ())

        def body(comm) -> None:
            native_name = "ncclSend" if name == "send" else "ncclRecv"
            rank = other if self._size > 2 else peer
            place = x.data_ptr(), _bytes(x), nccl.BYTES, rank
            self._call(native_name, comm, *place)

        return self._run(name, [x], tensors, body, None, peer=peer, comm=comm)

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        return self._message("send", tensors, dstRank)

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        return self._message("recv", tensors, srcRank)

    def start_coalescing(self) -> None:
        """Messages from now on are one batch, which `end_coalescing` sends."""
        self._batch = []

    def end_coalescing(self) -> Work:
        """Moves the messages since `start_coalescing`, all at once."""
        batch, self._batch = self._batch or [], None
        sends = [(peer, x) for name, x, peer in batch if name == "send"]
        receives = [(peer, x) for name, x, peer in batch if name == "recv"]
        tensors = [x for _, x, _ in batch]
        kind = "send" if sends else "recv"
        return self._exchange(kind, tensors, sends, receives, tensors, None)

    # The group's end.

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def abort(self) -> None:
        self._watchdog.stop()
        self._watchdog.failure = DistBackendError(
            f"nccl: group {self.group_name!r} was aborted at rank {self._rank}"
        )
        for comm in self._comms.values():
            comm.abort()

    def shrink(self, ranks_to_exclude, shrink_flags: int = 0, opts_override=None):
        # What has failed must not be waited for when the group is left.
        if shrink_flags or self._watchdog.failure is not None:
            self.abort()
        name, *place = self._left(ranks_to_exclude)
        options = opts_override or self.options
        options._timeout = self._timeout
        return ProcessGroupNCCL(
            PrefixStore(f"without {name}/", self._store),
            *place,
            options,
            group_name=f"{self.group_name}~{name}",
        )

    def shutdown(self) -> None:
        if self._watchdog.failure is None:
            for comm in self._comms.values():
                comm.stream.synchronize()
        self._watchdog.stop()
        for comm in self._comms.values():
            comm.close()
        self._comms.clear()

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence
