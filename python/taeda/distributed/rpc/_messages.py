"""Values as messages: pickles beside which the bytes of tensors travel.

Three kinds of parts make a message: what is known of it (`Note`), the pickle, and the
bytes of each tensor. Bytes are copied before they are signed, since a program may write
to a tensor that is on its way.
"""

from __future__ import annotations

import io
import pickle
import threading
from typing import Any, NamedTuple

import taeda

from ..autograd import _contexts
from ._wire import WireError, check_parts, split

__all__ = ["Message", "encode", "register_reducer"]

# Class -> how its instances travel; written while modules are imported.
_reducers: dict[type, Any] = {}
# The message that the running thread unpickles.
_loading = threading.local()


class Note(NamedTuple):
    """What a message says of itself; plain data."""

    extra: Any
    # Distributed autograd: the context, the number of this transfer in it, and which
    # tensors it records.
    context: int | None
    transfer: int | None
    recorded: list[int]
    # dtype, shape, strides and whether a gradient is required, of each tensor.
    tensors: list[tuple]


def register_reducer(kind: type, reducer) -> None:
    """Says how instances of a class travel: `reducer(value)` is what pickles return."""
    _reducers[kind] = reducer


class _Pickler(pickle.Pickler):
    def __init__(self, file, agent, to: int, plain: set[int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._agent, self._to, self._plain = agent, to, plain
        self.tensors: list = []
        self.forks: list = []

    def reducer_override(self, value):
        kind = type(value)
        if kind is taeda.Tensor or id(value) in self._plain:
            return self._tensor(value)
        if kind is taeda.nn.Parameter:
            return _load_parameter, (value.detach(), value.requires_grad)
        if hasattr(kind, "_rpc_fork"):
            state = value._rpc_fork(self._agent, self._to)
            self.forks.append(state)
            return _load_reference, state
        reducer = _reducers.get(kind)
        return NotImplemented if reducer is None else reducer(value)

    def _tensor(self, value):
        if value.layout != taeda.strided or value.is_quantized:
            return NotImplemented
        if value.device.type != "cpu":
            raise RuntimeError(
                f"rpc: a tensor of {value.device} cannot be sent to worker {self._to}; "
                "tensors travel through the CPU's memory, call .cpu() first"
            )
        self.tensors.append(value)
        return _load_tensor, (len(self.tensors) - 1,)


def _dense(tensor):
    """The tensor's numbers as a tensor that uses its storage to the last byte."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    size = tensor.numel() * tensor.element_size()
    if tensor.storage_offset() or tensor.untyped_storage().nbytes() != size:
        return tensor.clone(memory_format=taeda.contiguous_format)
    return tensor


def _bytes(tensor) -> bytes:
    return bytes(memoryview(tensor.untyped_storage())) if tensor.numel() else b""


def encode(value, agent, to: int, *, extra=None, plain=(), record: bool = True):
    """The parts of a message.

    Args:
        value: anything that pickles, with tensors and remote references in it.
        to: the number of the worker that will open it.
        extra: plain data for `Message.note`.
        plain: parameters among the values of a call itself, which travel as tensors
            where gradients are recorded.
        record: whether tensors enter the current context of distributed autograd.

    Raises:
        AttributeError, TypeError, pickle.PicklingError: parts do not pickle.
        ValueError: the message is too long.
    """
    context = _contexts.current() if record else None
    chosen: set[int] = set()
    if context is not None:
        chosen = {id(v) for v in plain if type(v) is taeda.nn.Parameter}
    file = io.BytesIO()
    pickler = _Pickler(file, agent, to, chosen)
    try:
        pickler.dump(value)
        dense = [_dense(tensor) for tensor in pickler.tensors]
        tensors = [
            (d.dtype, tuple(d.shape), d.stride(), t.requires_grad)
            for d, t in zip(dense, pickler.tensors, strict=True)
        ]
        parts = [b"", file.getvalue(), *map(_bytes, dense)]
        check_parts(parts)
    except BaseException:
        for state in pickler.forks:
            agent.references.unsent(*state)
        raise
    transfer, recorded = None, []
    if context is not None:
        recorded = [i for i, t in enumerate(pickler.tensors) if t.requires_grad]
        roots = [pickler.tensors[i] for i in recorded]
        transfer = context.sent(to, roots)
    if extra is not None or tensors or context is not None:
        number = None if context is None else context.number
        note = Note(extra, number, transfer, recorded, tensors)
        parts[0] = pickle.dumps(tuple(note), protocol=pickle.HIGHEST_PROTOCOL)
    return parts


_EMPTY = Note(None, None, None, [], [])


class Message:
    """A message that came.

    Args:
        body: of its frame.
        agent: who opens it.
        sender: the number of the worker that sent it.

    Raises:
        WireError: it has not the parts that it should have.
    """

    def __init__(self, body: bytearray, agent, sender: int) -> None:
        parts = split(body)
        if len(parts) < 2:
            raise WireError(f"a message has 2 parts or more, not {len(parts)}")
        self._agent, self._sender = agent, sender
        self._pickle, self._bytes = parts[1], parts[2:]
        self.note = Note(*pickle.loads(parts[0])) if parts[0] else _EMPTY
        if len(self._bytes) != len(self.note.tensors):
            raise WireError(
                f"a message has {len(self._bytes)} tensors and describes "
                f"{len(self.note.tensors)}"
            )

    def value(self) -> Any:
        """What was sent; the context that came with it knows its tensors."""
        note = self.note
        described = zip(note.tensors, self._bytes, strict=True)
        tensors = [_tensor(*what, data) for what, data in described]
        if note.context is not None:
            context = _contexts.of(note.context)
            context.knows(self._sender)
            if note.recorded:
                chosen = [tensors[i].detach() for i in note.recorded]
                chosen = context.received(self._sender, note.transfer, chosen)
                for index, tensor in zip(note.recorded, chosen, strict=True):
                    tensors[index] = tensor
        before = getattr(_loading, "message", None)
        _loading.message = (self._agent, self._sender, tensors)
        try:
            return pickle.loads(self._pickle)
        finally:
            _loading.message = before


def _tensor(dtype, shape, strides, requires_grad: bool, data: memoryview):
    tensor = taeda.empty_strided(shape, strides, dtype=dtype)
    if tensor.numel():
        with memoryview(tensor.untyped_storage()) as into:
            if len(into) != len(data):
                raise WireError(
                    f"{len(data)} bytes came for a tensor of {len(into)} bytes"
                )
            into[:] = data
    return tensor.requires_grad_() if requires_grad else tensor


def _load_tensor(index: int):
    return _loading.message[2][index]


def _load_parameter(data, requires_grad: bool):
    return taeda.nn.Parameter(data, requires_grad)


def _load_reference(*state):
    agent, sender, _ = _loading.message
    return agent.references.receive(sender, *state)
