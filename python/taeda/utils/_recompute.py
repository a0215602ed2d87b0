"""The part of checkpointing without reentrance that autograd's hooks drive."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from weakref import WeakKeyDictionary, ref

import taeda
from taeda.autograd import Function


class CheckpointError(RuntimeError):
    """Running the function again gave other values to save than the first time."""


class _Stop(Exception):
    """Everything that was missing has been computed."""


def is_tensor(value) -> bool:
    """Is it a tensor?"""
    return isinstance(value, taeda.Tensor)


class _Slot:
    """Stands in the graph for a tensor that is not kept."""

    __slots__ = ("__weakref__",)


class _Inputs(Function):
    """Keeps the block's tensor arguments as autograd keeps tensors.

    So changes to them are noticed, and an outer checkpoint's hooks replace them.
    """

    @staticmethod
    def forward(ctx, anchor, *tensors):
        ctx.save_for_backward(*tensors)
        return anchor.clone()

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("the inputs of a checkpoint have no backward")


def _facts(tensor) -> tuple:
    return tuple(tensor.shape), tensor.dtype, tensor.device


_OURS = (__file__, __file__.replace("_recompute", "checkpoint"))


def _line() -> str:
    """Where the user's program is now."""
    import traceback

    lines = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_stack()
        if frame.filename not in _OURS
    ]
    return " <- ".join(reversed(lines[-4:]))


class GraphExecGroup:
    """Backward passes over parts of one checkpoint, which share what it computes again.

    Each value stays until a pass has used it; at the end of the group the others are
    given up. Without a group each pass computes for itself.

    Raises:
        RuntimeError: a second group is entered inside of the first.
        CheckpointError: two passes of the group use the same saved value.

    Example:
        >>> x = taeda.ones(2, requires_grad=True)
        >>> y = taeda.utils.checkpoint.checkpoint(taeda.exp, x, use_reentrant=False)
        >>> with taeda.utils.checkpoint.GraphExecGroup():
        ...     y.sum().backward()
    """

    # The group of each thread and task; written by whoever enters and leaves one.
    _current: ContextVar = ContextVar("group", default=None)

    def __enter__(self) -> GraphExecGroup:
        if self._current.get() is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested")
        self._blocks: set = set()
        self._token = self._current.set(self)
        return self

    def __exit__(self, *args: object) -> None:
        self._current.reset(self._token)
        for block in self._blocks:
            block.passes.pop(self, None)
        self._blocks.clear()

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return cls._current.get()


class Block:
    """One call of `checkpoint` without reentrance."""

    compare = debug = False
    early_stop = True
    returned = False  # has the first call ended?

    def __init__(self, function, kwargs, around, second) -> None:
        self.function, self.kwargs = function, kwargs
        self.around, self.second = around, second
        self.slots: list = []  # weak references, in the order of saving
        self.facts: list = []
        self.lines: list = []
        # What was computed again, for each backward pass or group of passes.
        self.passes: dict = {}

    def run(self, args, first):
        if not taeda.is_grad_enabled():
            with first:
                return self.function(*args, **self.kwargs)
        self._keep(args)
        hooks = taeda.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        with hooks, first:
            result = self.function(*args, **self.kwargs)
            self.returned = True
            return result
        raise RuntimeError(
            "the forward context of context_fn suppressed an exception of the "
            "checkpointed function, which then has no result"
        )

    def _keep(self, args) -> None:
        tensors = [a for a in args if is_tensor(a)]
        self.others = [_INPUT if is_tensor(a) else a for a in args]
        self.inputs = None
        if tensors:
            anchor = taeda.empty((0,), requires_grad=True)
            self.inputs = _Inputs.apply(anchor, *tensors)

    def _args(self) -> list:
        kept = () if self.inputs is None else self.inputs.grad_fn.saved_tensors
        tensors = iter(kept)
        return [next(tensors) if a is _INPUT else a for a in self.others]

    def _pack(self, tensor) -> _Slot:
        slot = _Slot()
        self.slots.append(ref(slot))
        self.facts.append(_facts(tensor) if self.compare else None)
        if self.debug:
            self.lines.append(_line())
        return slot

    def _unpack(self, slot: _Slot):
        group = GraphExecGroup._get_current_group()
        number = taeda._C._current_graph_task_id()
        if group is None and number == -1:  # no pass, a program that looks
            return self._compute_again()[slot]
        key = number if group is None else group
        ready = self.passes.get(key)
        if ready is None:
            ready = self.passes[key] = self._compute_again()
            if group is None:
                taeda._C._queue_callback(partial(self.passes.pop, key, None))
            else:
                group._blocks.add(self)
        if slot not in ready:
            raise CheckpointError(
                "checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once" + (_ONE_READING if group is None else _OVERLAP)
            )
        return ready.pop(slot)

    def _compute_again(self) -> WeakKeyDictionary:
        """What each slot stands for."""
        again = _Again(self)
        hooks = taeda.autograd.graph.saved_tensors_hooks(again.pack, _same)
        try:
            with hooks, taeda.enable_grad(), self.around.restored(), self.second:
                self.function(*self._args(), **self.kwargs)
        except _Stop:
            pass
        again.check()
        return again.ready


_ONE_READING = ". A backward may read ctx.saved_tensors once."
_OVERLAP = (
    ". Performing two backward calls that overlap (that need the same saved value) is "
    "not allowed in a GraphExecGroup."
)
_INPUT = object()


def _same(value):
    return value


class _Again:
    """What the second call saves, matched with the slots of the first."""

    def __init__(self, block: Block) -> None:
        self.block, self.count = block, 0
        # A backward inside of the block meets what the first call has yet to save.
        self.ahead = not block.returned and not block.early_stop
        self.ready: WeakKeyDictionary = WeakKeyDictionary()
        self.facts: list = []
        self.lines: list = []

    def pack(self, tensor):
        # Without history: autograd attaches the one of the first call.
        tensor = tensor.detach() if tensor.requires_grad else tensor
        block, place = self.block, self.count
        if place >= len(block.slots):
            if block.early_stop:
                raise _Stop
            self.count += 1
            return tensor
        self.count += 1
        slot = block.slots[place]()
        self.facts.append(_facts(tensor) if block.compare else None)
        if block.debug:
            self.lines.append(_line())
        if slot is not None:
            self.ready[slot] = tensor
        if block.early_stop and self.count == len(block.slots):
            raise _Stop
        return tensor

    def check(self) -> None:
        """Refuse a second call that differs from the first."""
        block = self.block
        if self.ahead:
            return
        if self.count > len(block.slots):
            raise CheckpointError(
                "checkpoint: trying to save more tensors during recomputation than "
                f"during the original forward pass: {self.count} and "
                f"{len(block.slots)}." + self._hint(len(block.slots))
            )
        if not block.compare:
            return
        if self.count != len(block.slots):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(block.slots)}\n"
                f"Number of tensors saved during recomputation: {self.count}."
                + self._hint(min(self.count, len(block.slots)))
            )
        for place, (old, new) in enumerate(zip(block.facts, self.facts, strict=True)):
            if old != new and block.slots[place]() is not None:
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have "
                    "different metadata than during the forward pass.\n"
                    f"tensor at position {place}:\nsaved metadata: {_shown(old)}\n"
                    f"recomputed metadata: {_shown(new)}" + self._hint(place)
                )

    def _hint(self, place: int) -> str:
        block = self.block
        if not block.debug:
            return "\nPass debug=True to see which lines saved them."
        first = block.lines[place] if place < len(block.lines) else "nothing"
        second = self.lines[place] if place < len(self.lines) else "nothing"
        return (
            f"\nfirst call, saved by: {first}\nsecond call, saved by: {second}\n"
            "You are seeing this error because you passed `debug=True` to checkpoint."
        )


def _shown(facts: tuple) -> dict:
    return dict(zip(("shape", "dtype", "device"), facts, strict=True))
