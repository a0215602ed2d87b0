"""Automatic differentiation: the graph that calls leave behind, run backward."""

from __future__ import annotations

from taeda import _C
from taeda._lazy import attributes
from taeda.autograd.function import Function

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

# Names that live in submodules, by submodule.
_LAZY_NAMES = {
    "grad_mode": (
        "no_grad enable_grad set_grad_enabled inference_mode set_multithreading_enabled"
        " enforce_grad_layout_policy is_multithreading_enabled"
        " _unsafe_preserve_version_counter"
    ),
    "anomaly_mode": "detect_anomaly set_detect_anomaly",
    "gradcheck": "gradcheck gradgradcheck GradcheckError",
    "variable": "Variable",
    "function": "NestedIOFunction",
    ".profiler._kinds": "DeviceType",
    "._boxed": "SavedTensor",
    "._compat.native_autograd": (
        "kineto_available _push_saved_tensors_default_hooks"
        " _pop_saved_tensors_default_hooks"
    ),
}
_WHERE = {n: module for module, names in _LAZY_NAMES.items() for n in names.split()}
_WHERE["_force_original_view_tracking"] = "grad_mode"
_SUBMODULES = frozenset(
    "anomaly_mode forward_ad function functional grad_mode graph profiler "
    "variable".split()
)


__getattr__ = attributes(__name__, _WHERE, _SUBMODULES)


def _as_tuple(value) -> tuple:
    if value is None:
        return ()
    if isinstance(value, _C.TensorBase) or _is_edge(value):
        return (value,)
    return tuple(value)


def _is_edge(value) -> bool:
    return isinstance(value, tuple) and hasattr(value, "output_nr")


def _make_grads(outputs: tuple, grads: tuple) -> tuple:
    """One gradient per output, None where the engine is to take 1."""
    if not grads:
        return (None,) * len(outputs)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    for g in grads:
        if g is not None and not isinstance(g, _C.TensorBase):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(g).__name__}"
            )
    # A tensor that takes no part is passed over when its gradient is None.
    return grads


def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Add the gradients of the tensors' sum to the graph's leaves.

    Args:
        tensors (Tensor or GradientEdge, or a sequence): where to begin.
        grad_tensors: for each its gradient, the vector in vector-Jacobian products;
            None stands for 1 and is allowed for single elements only.
        retain_graph: keep what the graph saved; as `create_graph` if None.
        create_graph: record this computation too, for higher derivatives.
        inputs: leaves to accumulate into; all if None.

    Example:
        >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
        >>> taeda.autograd.backward((x**2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "backward: `grad_variables` is the old name of `grad_tensors`",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both "
                "passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_tuple(tensors)
    grads = _make_grads(outputs, _as_tuple(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    _C._run_backward(outputs, grads, keep, create_graph, _as_tuple(inputs), True, True)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of the outputs' sum by each input; leaves stay untouched.

    Args:
        outputs (Tensor, GradientEdge or a sequence): what is differentiated.
        inputs (Tensor, GradientEdge or a sequence): by what.
        grad_outputs: for each output its gradient; None stands for 1.
        retain_graph: keep what the graph saved; as `create_graph` if None.
        create_graph: record this computation too, for higher derivatives.
        allow_unused: give None for inputs that the outputs do not depend on.
        is_grads_batched: each of `grad_outputs` has one more dim in front, and so do
            the results: one gradient for each place in it.
        materialize_grads: give zeros for them.

    Example:
        >>> x = taeda.tensor([1.0, 2.0], requires_grad=True)
        >>> taeda.autograd.grad((x**2).sum(), x)
        (tensor([2., 4.]),)
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    named = (*outputs, *inputs)
    if _C._has_torch_function(named):
        return _C._handle_torch_function(
            grad,
            named,
            outputs,
            inputs,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to "
            "True). To accumulate gradient for other parts of the graph, please use "
            "backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when "
            "materialize_grads=True, but got: allow_unused=False."
        )
    unused = materialize_grads if allow_unused is None else allow_unused
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _make_grads(outputs, _as_tuple(grad_outputs))
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = _batched(outputs, grads, keep, create_graph, inputs, unused)
    else:
        found = _C._run_backward(
            outputs, grads, keep, create_graph, inputs, unused, False
        )
    if materialize_grads:
        found = tuple(
            _zeros_like(i, create_graph) if g is None else g
            for g, i in zip(found, inputs, strict=True)
        )
    return found


def _batched(outputs, grads, keep, create_graph, inputs, unused) -> tuple:
    """One pass with a batch of gradients, in a level of vmap."""
    from taeda._functorch.levels import batch_level

    _check_batched(outputs, grads)
    level = batch_level(grads[0].size(0), "error")
    with level:
        rows = tuple(level.wrap(g, 0) for g in grads)
        found = _C._run_backward(
            outputs, rows, keep, create_graph, inputs, unused, False
        )
        return tuple(None if g is None else level.unwrap(g, 0) for g in found)


def _check_batched(outputs, grads) -> None:
    if any(g is None for g in grads):
        raise RuntimeError(
            "grad can be implicitly created only for scalar outputs: with "
            "is_grads_batched=True each output needs a gradient"
        )
    for i, (output, g) in enumerate(zip(outputs, grads, strict=True)):
        if g.dim() == 0:
            raise IndexError(
                "If `is_grads_batched=True`, we interpret the first dimension of each "
                f"grad_output as the batch dimension, but grad_output[{i}] is 0-dim"
            )
        if _is_edge(output) or g.shape[1:] == output.shape:
            continue
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each "
            "grad_output as the batch dimension. The sizes of the remaining "
            "dimensions are expected to match the shape of corresponding output, but "
            f"a mismatch was detected: grad_output[{i}] has a shape of "
            f"{tuple(g.shape[1:])} and output[{i}] has a shape of "
            f"{tuple(output.shape)}."
        )
    sizes = sorted({g.size(0) for g in grads})
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped "
            f"dimension, got sizes {sizes} for the mapped dimension"
        )


def _zeros_like(tensor, requires_grad: bool):
    if not isinstance(tensor, _C.TensorBase):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    import taeda

    return taeda.zeros_like(tensor, requires_grad=requires_grad)


# What the module `variable` says when it is called: it was a function once.
_VARIABLE_IS_GONE = (
    "taeda.autograd.variable(...) is deprecated, use taeda.tensor(...) instead"
)
