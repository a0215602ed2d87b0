"""ProcessGroup: ranks that work together, over one backend for each kind of device."""

from __future__ import annotations

from datetime import timedelta

from . import _types as types
from ._backend import GroupBackend
from ._types import ReduceOp, Store
from ._work import Work

__all__ = ["ProcessGroup"]


class _BackendType:
    """A kind of backend, `ProcessGroup.BackendType.GLOO` and the others."""

    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"<BackendType.{self.name}: {self.value}>"


for _i, _name in enumerate("UNDEFINED GLOO NCCL UCC MPI XCCL CUSTOM".split()):
    setattr(_BackendType, _name, _BackendType(_name, _i))


def _first(tensors):
    """The tensor whose device decides; lists may be nested."""
    while isinstance(tensors, (list, tuple)):
        if not tensors:
            raise ValueError("ProcessGroup: expected tensors, got an empty list")
        tensors = tensors[0]
    return tensors


# PyTorch's methods are overloaded: tensors, or lists of them, then options, or values,
# each with a name of its own. Here a place takes either, and so do all the names.
def _placed(method: str, given: tuple, *named: tuple) -> list:
    """What each place was given, by position or by one of its names; else None.

    Raises:
        TypeError: more values than places, or two for one.
    """
    if len(given) > len(named):
        raise TypeError(
            f"{method} takes {len(named)} values by position at most, got {len(given)}"
        )
    found = []
    for i, names in enumerate(named):
        values = [v for v in (*given[i : i + 1], *names) if v is not None]
        if len(values) > 1:
            raise TypeError(f"{method} got {len(values)} values for argument {i}")
        found.append(values[0] if values else None)
    return found


def _with(options, **given):
    """The options among these values, else new ones of them."""
    for value in given.values():
        if isinstance(value, options):
            return value
    made = options()
    for name, value in given.items():
        if value is not None:
            setattr(made, name, value)
    return made


def _listed(tensors) -> list:
    """Tensors as a list, also one alone."""
    if tensors is None:
        raise TypeError("ProcessGroup: a tensor, or a list of tensors, is missing")
    return tensors if isinstance(tensors, (list, tuple)) else [tensors]


def _pair(lists, tensors):
    """A list for each tensor and the tensors, also of one tensor and its list."""
    one = not isinstance(tensors, (list, tuple))
    return ([lists] if one else lists), _listed(tensors)


class ProcessGroup:
    """Ranks that call collectives together.

    Its methods take lists of tensors and options, as backends do, or tensors and
    keywords; the functions of `taeda.distributed` are made of them. A backend in
    Python may also derive from this class.

    Args:
        store: where the ranks met; a rank where a subclass has none.
        rank: this process's number in the group.
        size: how many ranks it has.
    """

    BackendType = _BackendType

    def __init__(self, store: Store | int, rank: int, size: int | None = None) -> None:
        if size is None:
            store, rank, size = None, store, rank  # type: ignore[assignment]
        self._store, self._rank, self._size = store, int(rank), int(size)  # type: ignore[arg-type]
        self._backends: dict[str, GroupBackend] = {}
        self._group_name = self._group_desc = ""
        self._bound_device_id = None
        self._coalescing: list[Work] | None = None

    @property
    def bound_device_id(self):
        """The one device that the group works on, None where that is open."""
        return self._bound_device_id

    @bound_device_id.setter
    def bound_device_id(self, device) -> None:
        self._bound_device_id = device

    def rank(self) -> int:
        """This process's number in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        names = {b.getBackendName() for b in self._backends.values()}
        return names.pop() if len(names) == 1 else "undefined"

    def get_group_store(self) -> Store:
        """The store below this group's prefix."""
        return self._store  # type: ignore[return-value]

    @property
    def group_name(self) -> str:
        """The group's name, the same at all its ranks."""
        return self._group_name

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    @property
    def group_desc(self) -> str:
        """What the program says the group is for."""
        return self._group_desc

    def _set_group_desc(self, text: str) -> None:
        self._group_desc = text

    @property
    def _device_types(self) -> list:
        from taeda import device

        return [device(kind) for kind in self._backends]

    def _register_backend(self, device, backend_type, backend=None) -> None:
        """Gives the group a backend for a kind of device."""
        if backend is not None:
            kind = device if isinstance(device, str) else device.type
            self._backends[kind] = backend

    def _get_backend(self, device) -> GroupBackend:
        """The backend of a device.

        Raises:
            RuntimeError: the group has none for it.
        """
        kind = device if isinstance(device, str) else device.type
        found = self._backends.get(kind)
        if found is None:
            raise RuntimeError(
                f"ProcessGroup: No backend type associated with device type {kind}; "
                f"this group has {sorted(self._backends) or 'none'}"
            )
        return found

    def _of(self, tensors) -> GroupBackend:
        return self._get_backend(_first(tensors).device)

    def _any(self) -> GroupBackend:
        if not self._backends:
            raise RuntimeError("ProcessGroup: this group has no backend")
        return next(iter(self._backends.values()))

    # Collectives. A list of tensors with options is the form of backends.

    def allreduce(
        self, *given, tensors=None, tensor=None, op=None, opts=None, timeout=None
    ) -> Work:
        """Reduces tensors in place, the result at every rank."""
        tensors, op, timeout = _placed(
            "allreduce", given, (tensors, tensor), (op, opts), (timeout,)
        )
        tensors = _listed(tensors)
        opts = _with(types.AllreduceOptions, reduceOp=op, timeout=timeout)
        return self._of(tensors).allreduce(tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None) -> Work:
        """Reduces several tensors."""
        op = opts.reduceOp if opts is not None else None
        given = _with(types.AllreduceOptions, reduceOp=op)
        return self._of(tensors).allreduce_coalesced(tensors, given)

    def broadcast(
        self, *given, tensors=None, tensor=None, root=None, opts=None, timeout=None
    ) -> Work:
        """Copies the root's tensor to every rank."""
        tensors, root, timeout = _placed(
            "broadcast", given, (tensors, tensor), (root, opts), (timeout,)
        )
        tensors = _listed(tensors)
        opts = _with(types.BroadcastOptions, rootRank=root, timeout=timeout)
        return self._of(tensors).broadcast(tensors, opts)

    def reduce(
        self,
        *given,
        tensors=None,
        tensor=None,
        root=None,
        opts=None,
        op=None,
        timeout=None,
    ) -> Work:
        """Reduces tensors, the result at the root."""
        tensors, root, op, timeout = _placed(
            "reduce", given, (tensors, tensor), (root, opts), (op,), (timeout,)
        )
        tensors = _listed(tensors)
        opts = _with(types.ReduceOptions, rootRank=root, reduceOp=op, timeout=timeout)
        return self._of(tensors).reduce(tensors, opts)

    def allgather(
        self,
        *given,
        output_tensors=None,
        input_tensors=None,
        input_tensor=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Gathers every rank's tensor at every rank."""
        inputs = input_tensors, input_tensor
        outputs, tensors, timeout = _placed(
            "allgather", given, (output_tensors,), inputs, (opts, timeout)
        )
        outputs, tensors = _pair(outputs, tensors)
        opts = _with(types.AllgatherOptions, timeout=timeout)
        return self._of(tensors).allgather(outputs, tensors, opts)

    def _allgather_base(self, output, input, opts=None) -> Work:
        """Gathers every rank's tensor into one."""
        opts = _with(types.AllgatherOptions, opts=opts)
        return self._of(input)._allgather_base(output, input, opts)

    def all_gather_single(self, output, input, opts=None, timeout=None) -> Work:
        """Gathers every rank's tensor into one."""
        opts = _with(types.AllgatherOptions, opts=opts, timeout=timeout)
        return self._of(input)._allgather_base(output, input, opts)

    def allgather_coalesced(self, output_lists, input_list, opts=None) -> Work:
        """Gathers several tensors of every rank."""
        opts = _with(types.AllgatherOptions, opts=opts)
        backend = self._of(input_list)
        return backend.allgather_coalesced(output_lists, input_list, opts)

    def allgather_into_tensor_coalesced(
        self, output_lists, input_list, opts=None
    ) -> Work:
        """Gathers several tensors, each into one."""
        opts = _with(types.AllgatherOptions, opts=opts)
        backend = self._of(input_list)
        return backend.allgather_into_tensor_coalesced(output_lists, input_list, opts)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(
        self,
        *given,
        output_tensors=None,
        input_tensors=None,
        input_tensor=None,
        root=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Gathers every rank's tensor at the root."""
        inputs = input_tensors, input_tensor
        outputs, tensors, root, timeout = _placed(
            "gather", given, (output_tensors,), inputs, (root, opts), (timeout,)
        )
        outputs, tensors = _pair(outputs, tensors)
        opts = _with(types.GatherOptions, rootRank=root, timeout=timeout)
        return self._of(tensors).gather(outputs, tensors, opts)

    def scatter(
        self,
        *given,
        output_tensors=None,
        output_tensor=None,
        input_tensors=None,
        root=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Gives each rank one of the root's tensors."""
        outputs = output_tensors, output_tensor
        tensors, inputs, root, timeout = _placed(
            "scatter", given, outputs, (input_tensors,), (root, opts), (timeout,)
        )
        inputs, tensors = _pair(inputs, tensors)
        opts = _with(types.ScatterOptions, rootRank=root, timeout=timeout)
        return self._of(tensors).scatter(tensors, inputs, opts)

    def reduce_scatter(
        self,
        *given,
        output_tensors=None,
        output=None,
        input_tensors=None,
        input_tensor=None,
        input=None,
        op=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Reduces lists of tensors; each rank gets its entry."""
        outputs = output_tensors, output
        inputs = input_tensors, input_tensor, input
        tensors, lists, op, timeout = _placed(
            "reduce_scatter", given, outputs, inputs, (op, opts), (timeout,)
        )
        lists, tensors = _pair(lists, tensors)
        opts = _with(types.ReduceScatterOptions, reduceOp=op, timeout=timeout)
        return self._of(tensors).reduce_scatter(tensors, lists, opts)

    def _reduce_scatter_base(self, outputTensor, inputTensor, opts=None) -> Work:
        """Reduces a tensor; each rank gets its part."""
        opts = _with(types.ReduceScatterOptions, opts=opts)
        return self._of(inputTensor)._reduce_scatter_base(
            outputTensor, inputTensor, opts
        )

    def reduce_scatter_single(
        self, outputTensor, inputTensor, opts=None, op=None, timeout=None
    ) -> Work:
        """Reduces a tensor; each rank gets its part."""
        if isinstance(opts, ReduceOp):
            opts, op = None, opts
        opts = _with(
            types.ReduceScatterOptions, opts=opts, reduceOp=op, timeout=timeout
        )
        return self._of(inputTensor)._reduce_scatter_base(
            outputTensor, inputTensor, opts
        )

    def reduce_scatter_tensor_coalesced(
        self, outputTensors, inputTensors, opts=None
    ) -> Work:
        """Reduces several tensors; each rank gets its parts."""
        opts = _with(types.ReduceScatterOptions, opts=opts)
        backend = self._of(inputTensors)
        return backend.reduce_scatter_tensor_coalesced(
            outputTensors, inputTensors, opts
        )

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def alltoall(
        self,
        *given,
        output_tensors=None,
        output_tensor=None,
        output=None,
        input_tensors=None,
        input_tensor=None,
        input=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Sends entry r of a list to rank r, and receives as many."""
        outputs = output_tensors, output_tensor, output
        inputs = input_tensors, input_tensor, input
        outputs, inputs, timeout = _placed(
            "alltoall", given, outputs, inputs, (opts, timeout)
        )
        opts = _with(types.AllToAllOptions, timeout=timeout)
        outputs, inputs = _listed(outputs), _listed(inputs)
        return self._of(outputs).alltoall(outputs, inputs, opts)

    def alltoall_base(
        self,
        *given,
        output_tensor=None,
        output=None,
        input_tensor=None,
        input=None,
        output_split_sizes=None,
        input_split_sizes=None,
        opts=None,
        timeout=None,
    ) -> Work:
        """Sends part r of a tensor to rank r, and receives as many."""
        output, input, *sizes, timeout = _placed(
            "alltoall_base",
            given,
            (output_tensor, output),
            (input_tensor, input),
            (output_split_sizes,),
            (input_split_sizes,),
            (opts, timeout),
        )
        opts = _with(types.AllToAllOptions, timeout=timeout)
        return self._of(input).alltoall_base(output, input, *sizes, opts)

    all_to_all_single = alltoall_base

    def barrier(self, *given, opts=None, timeout: timedelta | None = None) -> Work:
        """Ends when every rank has called it."""
        (timeout,) = _placed("barrier", given, (opts, timeout))
        return self._any().barrier(_with(types.BarrierOptions, timeout=timeout))

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier that names the ranks which do not come."""
        self._any().monitored_barrier(timeout, wait_all_ranks)

    def send(self, tensors, dstRank: int, tag: int) -> Work:
        """Sends a tensor to a rank of the group."""
        return self._of(tensors).send(tensors, dstRank, tag)

    def recv(self, tensors, srcRank: int, tag: int) -> Work:
        """Receives a tensor from a rank of the group."""
        return self._of(tensors).recv(tensors, srcRank, tag)

    def recv_anysource(self, tensors, tag: int) -> Work:
        """Receives a tensor from whichever rank sends."""
        return self._of(tensors).recv_anysource(tensors, tag)

    def split_group(
        self,
        new_ranks,
        timeout: timedelta | None = None,
        opts=None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types=None,
    ) -> ProcessGroup | None:
        """A group of some ranks of this one; all ranks of this one call it.

        Args:
            new_ranks: their numbers in this group.
            timeout: of each collective.
            opts: what the backend takes.
            group_desc: what the group is for.

        Returns:
            The group, None at ranks outside of it.

        Raises:
            NotImplementedError: a name, or kinds of devices, of its own.
        """
        from ._subgroups import split_group

        if group_name is not None or device_types is not None:
            raise NotImplementedError(
                "ProcessGroup.split_group: group_name and device_types are not there"
            )
        return split_group(self, [new_ranks], timeout, opts, group_desc)

    def set_timeout(self, timeout: timedelta) -> None:
        """The limit of operations from now on."""
        for backend in self._backends.values():
            backend.set_timeout(timeout)

    def abort(self) -> None:
        """Ends what is running with an error, here and at the other ranks."""
        for backend in set(self._backends.values()):
            backend.abort()

    def shutdown(self) -> None:
        """Waits for what is running; nothing may come afterwards."""
        for backend in set(self._backends.values()):
            backend.shutdown()

    def _get_sequence_number_for_group(self) -> int:
        return self._any()._get_sequence_number_for_group()

    def _get_backend_name(self) -> str:
        return self.name()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(name={self._group_name!r}, rank={self._rank}, "
            f"size={self._size}, backend={self.name()!r})"
        )
