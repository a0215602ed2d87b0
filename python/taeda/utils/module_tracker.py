"""Which modules are running, forward or backward."""

from __future__ import annotations

import weakref

from taeda import _C
from taeda.autograd.graph import register_multi_grad_hook
from taeda.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from taeda.utils._pytree import tree_flatten

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context that knows the modules which run inside of it.

    Attributes:
        parents: names of the modules that are running, and always "Global". A module
            that was called by itself goes by its class, those inside by their path
            from there ("Sequential.0"). In backward a module runs from the gradients
            of its outputs to those of its inputs, or to the end where no input has one.
        is_bw: whether a backward pass is running in this thread.

    Calls are told apart by thread no more than hooks of modules are: one thread runs
    modules while a tracker is entered. Entering it again begins anew.

    Example:
        >>> with ModuleTracker() as tracker:
        ...     sorted(tracker.parents)
        ['Global']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._handles: list = []
        self._resets_after_backward = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running."""
        return _C._current_graph_task_id() != -1

    def _name(self, module) -> str:
        if module not in self._names:
            # By paths from here, whatever was called first on the way.
            for path, inner in module.named_modules(prefix=type(module).__name__):
                self._names[inner] = path
        return self._names[module]

    def _reset(self) -> None:
        self.parents = {"Global"}
        self._resets_after_backward = False

    def _enter_backward(self, name: str) -> None:
        if not self._resets_after_backward:
            _C._queue_callback(self._reset)
            self._resets_after_backward = True
        self.parents.add(name)

    def _hook_gradients(self, tree, function) -> None:
        tensors = [
            leaf
            for leaf in tree_flatten(tree)[0]
            if isinstance(leaf, _C.TensorBase) and leaf.requires_grad
        ]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, function))

    def _before(self, module, args) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._hook_gradients(args, lambda _: self.parents.discard(name))

    def _after(self, module, args, output) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._hook_gradients(output, lambda _: self._enter_backward(name))

    def __enter__(self):
        self._reset()
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *exception) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
