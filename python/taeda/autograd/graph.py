"""Nodes and edges of the graph, hooks on them, hooks on saved tensors."""

from __future__ import annotations

import abc
from collections import namedtuple
from collections.abc import Callable

from taeda import _C
from taeda._lazy import attributes
from taeda.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """What `tensor.grad_fn` gives: one recorded call."""

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the node's kind, such as AddBackward0."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple:
        """Pairs of a node (or None) and the number of its output."""

    @abc.abstractmethod
    def metadata(self) -> dict:
        """What programs have noted about it."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable) -> RemovableHandle:
        """fn(grad_inputs, grad_outputs), called after the node ran."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """fn(grad_outputs), called before the node runs."""

    @classmethod
    def __subclasshook__(cls, other):
        if cls is Node:
            return issubclass(other, (_C._NodeBase, _C._FunctionBase))
        return NotImplemented


GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"])
GradientEdge.__new__.__defaults__ = (None,)
GradientEdge.__doc__ = "Where a gradient goes: output `output_nr` of `node`."


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge along which the tensor's gradient comes; keeps no values alive."""
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor) -> None:
    """Note that a tensor, or each of several, was changed behind autograd's back."""
    tensors = (tensor,) if isinstance(tensor, _C.TensorBase) else tensor
    for t in tensors:
        _C._bump_version(t)


# Hooks on nodes ---------------------------------------------------------------


def _add_node_hook(node, hook: Callable, before: bool) -> RemovableHandle:
    hooks = _C._node_hooks(node, before)  # the node's; the handle refers to them
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register_hook(self, hook: Callable) -> RemovableHandle:
    """hook(grad_inputs, grad_outputs), called after the node ran."""
    return _add_node_hook(self, hook, before=False)


def _register_prehook(self, hook: Callable) -> RemovableHandle:
    """hook(grad_outputs), called before the node runs."""
    return _add_node_hook(self, hook, before=True)


def register_multi_grad_hook(tensors, fn: Callable, *, mode: str = "all"):
    """Call `fn` when the gradients of several tensors have come.

    Args:
        tensors: those whose gradients are awaited.
        fn: called with a list of gradients, None for those that will not come
            (mode "all"), or with the first gradient (mode "any").
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _first_grad_hook(tensors, fn)
    states: dict = {}
    nodes = [get_gradient_edge(t).node for t in tensors]

    def make(index: int):
        def hook(grad) -> None:
            task = _C._current_graph_task_id()
            state = states.get(task)
            if state is None:
                awaited = sum(map(_C._will_engine_execute_node, nodes))
                state = states[task] = [0, awaited, [None] * len(nodes)]
            state[0] += 1
            state[2][index] = grad
            if state[0] == state[1]:
                del states[task]
                fn(state[2])

        return hook

    return _Handles([t.register_hook(make(i)) for i, t in enumerate(tensors)])


def _first_grad_hook(tensors, fn: Callable):
    done: set = set()

    def hook(grad) -> None:
        task = _C._current_graph_task_id()
        if task not in done:
            done.add(task)
            _C._queue_callback(lambda: done.discard(task))
            fn(grad)

    return _Handles([t.register_hook(hook) for t in tensors])


class _Handles:
    """Several handles that are removed together."""

    def __init__(self, handles) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.remove()


# Hooks on saved tensors ---------------------------------------------------------


class saved_tensors_hooks:
    """Inside, what is saved for backward passes through a pair of functions.

    Args:
        pack_hook: takes a tensor that is to be saved; returns anything.
        unpack_hook: takes what pack_hook returned; returns the tensor.
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps saved tensors in CPU memory until backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor):
            return tensor.device, tensor.cpu()

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Inside, saved-tensor hooks are an error with this message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def __enter__(self) -> None:
        self.before = _C._disable_saved_tensors_hooks(self.message)

    def __exit__(self, *error) -> None:
        _C._disable_saved_tensors_hooks(self.before)

    def __call__(self, function: Callable) -> Callable:
        import functools

        @functools.wraps(function)
        def called(*args, **kwargs):
            with type(self)(self.message):
                return function(*args, **kwargs)

        return called


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What a backward pass does that is recorded into a GPU's graph with nodes of other
    streams. There are no such graphs yet, so that nothing can be stale.

    Args:
        enabled: whether the recording's stream takes their place.
    """


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether a leaf's gradient from another stream than the leaf's is worth a warning.

    Raises:
        NotImplementedError: True; no such warning is given.
    """
    if enabled:
        raise NotImplementedError("set_warn_on_accumulate_grad_stream_mismatch(True)")


def region_activation_memory_budget(budget: float):
    """The part of its activations that a compiled region may keep.

    Args:
        budget: from 0, all computed again, to 1, all kept.

    Raises:
        ValueError: another number.
        RuntimeError: always otherwise; outside of a compiled region there is no graph
            to cut, and the compiler has no such part yet.
    """
    if not 0 <= budget <= 1:
        raise ValueError(
            f"region_activation_memory_budget: must be in [0, 1], got {budget}"
        )
    raise RuntimeError(
        "region_activation_memory_budget can only be used inside a compile region; it "
        "has no effect in eager mode"
    )


_LATER = {"allow_mutation_on_saved_tensors": "._mutation"}
__all__ += list(_LATER)
__getattr__ = attributes(__name__, _LATER)
