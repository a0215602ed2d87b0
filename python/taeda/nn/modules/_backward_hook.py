"""Full backward hooks: identity nodes around a module catch its gradients."""

from __future__ import annotations

import taeda
from taeda import Tensor

from ._hooks import _warn, _WrappedHook

_identity = None


def _identity_function():
    """The autograd function of the nodes; made when first needed."""
    global _identity
    if _identity is None:

        class BackwardHookFunction(taeda.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                frozen = [a for a in args if not a.requires_grad]
                ctx.mark_non_differentiable(*frozen)
                return args

            @staticmethod
            def backward(ctx, *args):
                return args

        _identity = BackwardHookFunction
    return _identity


class BackwardHook:
    """Runs a module's full backward hooks during one backward pass."""

    def __init__(self, module, user_hooks, user_pre_hooks) -> None:
        self.module = module
        self.user_hooks, self.user_pre_hooks = user_hooks, user_pre_hooks
        self.grad_outputs = None
        self.n_inputs, self.input_index = -1, None
        self.n_outputs, self.output_index = -1, None

    def setup_input_hook(self, args):
        """Args with an identity node behind every tensor that needs gradients."""
        made, self.input_index = self._through(self._on_inputs, args)
        self.n_inputs = len(args)
        return made

    def setup_output_hook(self, args):
        """The same for the module's output."""
        whole = isinstance(args, tuple)
        outputs = args if whole else (args,)
        made, self.output_index = self._through(self._on_outputs, outputs)
        self.n_outputs = len(outputs)
        return made if whole else made[0]

    def _through(self, hook, values):
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        tensors = [values[i] for i in places]
        wanted = any(t.requires_grad for t in tensors)
        if not wanted or not taeda.is_grad_enabled():
            return values, None
        made = _identity_function().apply(*tensors)
        node = next(
            t.grad_fn
            for t in made
            if t.grad_fn is not None and "BackwardHookFunction" in t.grad_fn.name()
        )
        node.register_hook(hook)
        result = list(values)
        for place, tensor in zip(places, made, strict=False):
            result[place] = tensor
        kind = type(values)
        return kind(*result) if hasattr(kind, "_fields") else kind(result), places

    def _on_inputs(self, grad_input, _):
        if self.grad_outputs is None:  # no gradient reached the module's output
            return None
        grads = _spread(grad_input, self.input_index, self.n_inputs)
        for hook in self.user_hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is not None:
                grads = _checked(changed, len(grads), "grad_input")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_index)

    def _on_outputs(self, _, grad_output):
        grads = _spread(grad_output, self.output_index, self.n_outputs)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = _checked(changed, len(grads), "grad_output")
        self.grad_outputs = grads
        if self.input_index is None:
            self._without_inputs()
        if self.user_pre_hooks:
            return tuple(grads[i] for i in self.output_index)
        return None

    def _without_inputs(self) -> None:
        """No input needs a gradient, so the hooks run as soon as outputs have."""
        if self.user_hooks:
            _warn(
                "Full backward hook is firing when gradients are computed with respect "
                "to module outputs since no inputs require gradients: grad_input is "
                "None throughout."
            )
        nothing = (None,) * self.n_inputs
        for hook in self.user_hooks:
            changed = hook(self.module, nothing, self.grad_outputs)
            if changed is not None and any(g is not None for g in changed):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient "
                    "should always return None or None for all gradients."
                )
        self.grad_outputs = None


def _spread(grads, places, count):
    result = [None] * count
    for place, grad in zip(places, grads, strict=False):
        result[place] = grad
    return tuple(result)


def _checked(changed, count, name):
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != count:
        raise RuntimeError(
            f"Backward hook returned an invalid number of {name}, got "
            f"{len(changed)}, but expected {count}"
        )
    return changed


def hook_last_node(module, hooks, args, result) -> None:
    """Old backward hooks: put them on the node that made the output."""
    last = result
    while not isinstance(last, Tensor):
        if isinstance(last, dict):
            last = next(v for v in last.values() if isinstance(v, Tensor))
        else:
            last = last[0]
    node = last.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_WrappedHook(hook, module))
    _warn_of_missing_gradients(args, result, node)


def _warn_of_missing_gradients(args, result, node) -> None:
    outputs = result if isinstance(result, tuple) else (result,)
    inputs = args if isinstance(args, tuple) else (args,)
    if not all(isinstance(v, Tensor) for v in outputs):
        reason = "a Module does not return a single Tensor or a tuple of Tensors"
    elif not all(isinstance(v, Tensor) for v in inputs):
        reason = "it does not take as input a single Tensor or a tuple of Tensors"
    else:
        made = {v.grad_fn for v in outputs if v.grad_fn is not None}
        came = {v.grad_fn for v in inputs if v.grad_fn is not None}
        if len(made) > 1:
            reason = "outputs are generated by different autograd Nodes"
        elif node not in made:
            reason = "outputs are nested in python data structure"
        elif came != {n[0] for n in node.next_functions}:
            reason = "the forward contains multiple autograd Nodes"
        else:
            return
    _warn(
        f"Using a non-full backward hook when {reason} is deprecated: it misses some "
        "gradients. Please use register_full_backward_hook instead.",
        FutureWarning,
    )
