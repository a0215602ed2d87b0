"""Registration of hooks on tensors: the Python half of the tensors' methods."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from taeda.utils.hooks import RemovableHandle


def _add(hooks: OrderedDict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_hook(tensor, hook: Callable) -> RemovableHandle:
    """hook(grad), called when the tensor's gradient is there; may replace it."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    hooks = tensor._backward_hooks
    if hooks is None:
        hooks = tensor._backward_hooks = OrderedDict()
    return _add(hooks, hook)


def register_post_accumulate_grad_hook(tensor, hook: Callable) -> RemovableHandle:
    """hook(tensor), called when a leaf's grad has been added to."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if tensor.grad_fn is not None:
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    hooks = tensor._post_accumulate_grad_hooks
    if hooks is None:
        hooks = tensor._post_accumulate_grad_hooks = OrderedDict()
    return _add(hooks, hook)
