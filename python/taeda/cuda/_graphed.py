"""`make_graphed_callables`: forward and backward passes as graphs."""

from __future__ import annotations

import taeda
from taeda.cuda._devices import synchronize
from taeda.cuda.graphs import CUDAGraph, graph, graph_pool_handle
from taeda.cuda.streams import Stream, current_stream
from taeda.cuda.streams import stream as on_stream
from taeda.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HOOKS = "_backward_hooks _backward_pre_hooks _forward_hooks _forward_pre_hooks"


def _check_module(module: Any) -> None:
    if any(getattr(module, name, None) for name in _HOOKS.split()):
        raise RuntimeError(
            "make_graphed_callables: modules must not have hooks registered on them "
            f"before they are graphed, {type(module).__name__} has"
        )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise RuntimeError(
            "make_graphed_callables: only parameters may require gradients, "
            f"{type(module).__name__} has a buffer that does"
        )


class _Part:
    """One callable: what its graphs read and write, and the graphs."""

    def __init__(self, function: Callable, args: Any) -> None:
        self.function, self.args = function, args
        flat, _ = tree_flatten(args)
        for value in flat:
            if not isinstance(value, taeda.Tensor):
                raise TypeError(
                    "make_graphed_callables: sample_args must be tensors, got "
                    f"{type(value).__name__}"
                )
        module = isinstance(function, taeda.nn.Module)
        if module:
            _check_module(function)
        self.count = len(flat)
        parameters = tuple(function.parameters()) if module else ()
        self.inputs = (*flat, *parameters)
        self.wanted = [t for t in self.inputs if t.requires_grad]
        self.forward, self.backward = CUDAGraph(), CUDAGraph()

    def gradients(self, outputs: list, grads: list, allow_unused: bool) -> tuple:
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if g is not None]
        if not pairs or not self.wanted:
            return ()
        return taeda.autograd.grad(
            [o for o, _ in pairs],
            self.wanted,
            [g for _, g in pairs],
            only_inputs=True,
            allow_unused=allow_unused,
        )

    def warm_up(self, allow_unused: bool) -> None:
        outputs, _ = tree_flatten(self.function(*self.args))
        grads = [taeda.ones_like(o) if o.requires_grad else None for o in outputs]
        self.gradients(outputs, grads, allow_unused)

    def capture_forward(self, pool: Any) -> None:
        with graph(self.forward, pool=pool):
            outputs = self.function(*self.args)
        self.outputs, self.spec = tree_flatten(outputs)

    def capture_backward(self, pool: Any, allow_unused: bool) -> None:
        self.grad_outputs = [
            taeda.empty_like(o) if o.requires_grad else None for o in self.outputs
        ]
        found: tuple = ()
        if self.wanted and any(g is not None for g in self.grad_outputs):
            with graph(self.backward, pool=pool):
                found = self.gradients(self.outputs, self.grad_outputs, allow_unused)
        rest = iter(found)
        self.grad_inputs = [
            next(rest, None) if t.requires_grad else None for t in self.inputs
        ]


def _function_of(part: _Part) -> Callable:
    class Graphed(taeda.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple:
            for place in range(part.count):
                static = part.inputs[place]
                if static.data_ptr() != inputs[place].data_ptr():
                    static.copy_(inputs[place])
            part.forward.replay()
            return tuple(o.detach() for o in part.outputs)

        @staticmethod
        @taeda.autograd.function.once_differentiable
        def backward(ctx: Any, *grads: Any) -> tuple:
            for static, given in zip(part.grad_outputs, grads, strict=True):
                if static is not None and static.data_ptr() != given.data_ptr():
                    static.copy_(given)
            part.backward.replay()
            return tuple(g if g is None else g.detach() for g in part.grad_inputs)

    def call(*args: Any) -> Any:
        flat, _ = tree_flatten(args)
        results = Graphed.apply(*flat, *part.inputs[part.count :])
        results = results if isinstance(results, tuple) else (results,)
        return tree_unflatten(list(results), part.spec)

    return call


def _installed(module: Any, call: Callable) -> Any:
    """The module, which uses the graphs where `training` is what it was."""
    training, plain = module.training, module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        if module.training != training or kwargs:
            return plain(*args, **kwargs)
        return call(*args)

    module.forward = forward
    return module


def graphed(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int,
    allow_unused_input: bool,
    pool: Any,
) -> Any:
    """See `cuda.make_graphed_callables`."""
    if taeda.is_autocast_enabled() and taeda.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables: autocast must have cache_enabled=False"
        )
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    pairs = zip(callables, sample_args, strict=True)
    parts = [_Part(function, args) for function, args in pairs]
    pool = graph_pool_handle() if pool is None else pool
    synchronize()
    side = Stream()
    side.wait_stream(current_stream())
    with on_stream(side):
        for part in parts:
            for _ in range(num_warmup_iters):
                part.warm_up(allow_unused_input)
    current_stream().wait_stream(side)
    synchronize()
    for part in parts:
        part.capture_forward(pool)
    for part in reversed(parts):
        part.capture_backward(pool, allow_unused_input)
    made = [
        _installed(part.function, _function_of(part))
        if isinstance(part.function, taeda.nn.Module)
        else _function_of(part)
        for part in parts
    ]
    return made[0] if single else tuple(made)
