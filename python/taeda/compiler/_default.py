"""The default backend and "aot_eager": captured calls as forward and backward graphs"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence

from taeda import _C, Tensor, _compiler
from taeda._checks import may_refuse
from taeda._determinism import are_deterministic_algorithms_enabled
from taeda._functorch import config as _functorch_config
from taeda._logging import artifact_log, wanted

from . import _checks
from ._events import warn
from ._frames import Number
from ._graphs import graph_module
from ._sizes import Applied, SizeText

__all__ = [
    "changes_state_of_tensors",
    "compile_calls",
    "compile_function",
    "emulates_casts",
]


def _failed(error: Exception, name: str = "inductor", fullgraph: bool = False) -> None:
    """A graph that is not compiled runs as it was captured: a warning says so.

    Under `fullgraph` it is an error, but where an operator has no rule for stand-ins
    (masks among several indices). TAEDA_COMPILE_STRICT=1 in the environment raises what
    went wrong itself.
    """
    if os.environ.get("TAEDA_COMPILE_STRICT") == "1":
        raise error
    if fullgraph and not isinstance(error, NotImplementedError):
        from taeda._dynamo.exc import BackendCompilerFailed

        raise BackendCompilerFailed(name, error) from error
    text = f"compile: a graph runs as it was captured: {type(error).__name__}: {error}"
    artifact_log("perf_hints", text)
    warn("%s", text)


def _left(reason: str, fullgraph: bool) -> None:
    """What no graph of operators holds is run as it was captured."""
    text = f"compile: a graph runs as it was captured, call by call: {reason}"
    artifact_log("perf_hints", text)
    if fullgraph:
        warn("%s", text)


def emulates_casts(option: bool | None) -> bool:
    """Whether 16-bit results are rounded in kernels: by an option, else by setting."""
    if option is not None:
        return option
    from . import config

    return config.emulate_precision_casts


def _show(made) -> None:
    """Logs what a function has just been compiled to."""
    forward, backward = made.graphs()[-1]
    artifact_log("aot_graphs", f"Forward graph:\n{forward}")
    if backward:
        artifact_log("aot_graphs", f"Backward graph:\n{backward}")
    regions = made.regions()[-1]
    for region in regions:
        artifact_log("schedule", f"Loops of a kernel:\n{region.loops}")
    for code in dict.fromkeys(region.code for region in regions):
        artifact_log("output_code", f"Kernels in C++:\n{code}")


def compile_function(
    function,
    inputs,
    *,
    fuse: bool,
    recompute: bool | None = None,
    blocking: bool = False,
    check: bool = False,
    emulate_precision_casts: bool | None = None,
    fullgraph: bool = False,
    symbols=None,
    cleared: Sequence[int] = (),
    passes: bool = False,
):
    """A function of tensors, compiled when it is first called.

    Args:
        function: called with tensors, returns a tensor or a tuple or list of them.
        inputs: what it will be called with first.
        fuse: whether calls are fused.
        recompute: whether cheap calls are made again in the backward pass, in place
            of keeping what they gave; as `fuse` by default.
        blocking: whether the first call waits until the kernels are compiled; it does
            under deterministic algorithms, since a kernel rounds otherwise than the
            calls that it stands for, and when it is there is no program's to say.
        check: whether each kernel is held to the calls that it stands for, at each
            run; the first one that differs raises `KernelDiffers`.
        emulate_precision_casts: whether the 16-bit result of each call is rounded as
            it is eagerly; None: as the setting of this name says now.
        fullgraph: refuse a function that cannot be one graph.
        symbols: for each argument a SymInt where it is a number, (sizes, strides)
            where it is a tensor that has symbols, else None. One graph serves all
            numbers for which it would decide the same.
        cleared: which of the tensors lose their gradients before each call.
        passes: whether the function makes backward passes, or looks at gradients
            or sets them; those that the tensors have are then its own.

    Returns:
        A callable; without `fullgraph`, it calls `function` itself where that cannot
        be one graph.
    """
    failed = functools.partial(
        _failed, name="inductor" if fuse else "aot_eager", fullgraph=fullgraph
    )
    wait = blocking or are_deterministic_algorithms_enabled()
    shown = any(map(wanted, ("aot_graphs", "schedule", "output_code")))
    return _compiler.compile(
        function,
        failed,
        on_made=_show if shown else None,
        recompute=fuse if recompute is None else recompute,
        fuse=fuse,
        blocking=wait,
        check=check,
        budget=_functorch_config.activation_memory_budget,
        emulate_precision_casts=emulates_casts(emulate_precision_casts),
        symbols=symbols,
        cleared=list(cleared),
        passes=passes,
    )


def compile_calls(
    nodes, outputs, inputs, sizes, variables=(), *, fullgraph=False, **settings
):
    """As `compile_function`, for captured calls (see `_graphs.graph_module`).

    Returns:
        A callable, or None where the calls are to run as they were captured: some read
        data or objects that are no tensors, or change more than a tensor's elements.
    """
    first = {i: nodes[i][1] for i in inputs if isinstance(i, int)}
    left = functools.partial(_left, fullgraph=fullgraph)
    if not all(isinstance(value, Tensor) for value in first.values()):
        return left("it has inputs that are no tensors")
    calls = [
        (i, *node) for i, node in enumerate(nodes) if node and type(node[0]) is not str
    ]
    if any(len(call) > 4 for call in calls):
        return left("sizes follow from the elements of tensors")
    cleared, calls = _split_clearing(calls, first)
    if any(getattr(call[1], "__name__", "") in _READS for call in calls):
        return left("it reads elements of tensors")
    if any(map(_branches, calls)):
        return left("elements of tensors decide what it computes")
    if any("context_fn" in (call[3] or ()) for call in calls):
        return left("a checkpoint has contexts of its own")
    if any(_changes_state(call, first) for call in calls):
        return left("it changes how autograd sees a tensor")
    settings["fullgraph"] = fullgraph
    settings["passes"] = any(_is_of_passes(call, first) for call in calls)
    tensors = list(first)
    settings["cleared"] = [tensors.index(call[2][0]) for call in cleared]
    checked = any(may_refuse(call[1]) for call in calls)

    def compiled(function, given):
        make = functools.partial(compile_function, **settings)
        return (
            _checks.compiled(function, given, make)
            if checked
            else make(function, given)
        )

    if sizes or len(first) < len(inputs) or any(map(_has_number, calls)):
        left_out = [call[0] for call in cleared]
        kept = [None if i in left_out else node for i, node in enumerate(nodes)]
        function = graph_module(kept, outputs, inputs, sizes)[0].forward
        settings["symbols"] = [_symbols_of(entry, nodes) for entry in inputs]
    else:
        function = _function(calls, len(nodes), outputs, inputs)
    given = [first[i] if isinstance(i, int) else i[2] for i in inputs]
    made = compiled(function, given)
    if not made.prepare(*given):
        # What went wrong was told; under a mode or transform nothing did.
        return left("it cannot be traced here") if fullgraph else None
    if os.environ.get("TAEDA_MINIFY") and "symbols" not in settings:
        from ._repro import Held

        made = Held(
            made, lambda: graph_module(nodes, outputs, inputs, sizes, variables)[0]
        )
    return made


def _symbols_of(entry, nodes):
    """What `compile_function` is told of an input: see `_graphs.graph_module`."""
    return nodes[entry][2] if isinstance(entry, int) else entry[2]


_set_gradient = vars(_C.TensorBase)["grad"].__set__
_get_gradient = vars(_C.TensorBase)["grad"].__get__


def _branches(call) -> bool:
    """Whether elements decide what runs: a branch, or one more turn of a loop."""
    forms = sys.modules.get("taeda._higher_order_ops._graph_forms")
    return forms is not None and call[1] in (forms.cond, forms.while_loop)


# What graphs of operators have no node for: how autograd sees a tensor from then on.
_STATE = frozenset(
    "register_hook register_post_accumulate_grad_hook retain_grad requires_grad_"
    " detach_".split()
)


# Calls whose results are no tensors: numbers and arrays.
_READS = frozenset(("item", "tolist", "numpy", "of_array", "of_tensor"))


def _is_of_passes(call, first) -> bool:
    """Whether it makes a backward pass, or looks at an input's gradient or sets it."""
    _, function, arguments, _ = call
    if function in (_get_gradient, _set_gradient):
        return arguments[0] in first
    return function is Tensor.backward


def _split_clearing(calls, first) -> tuple[list, list]:
    """What clears gradients of inputs before anything asks for one, and the rest.

    `x.grad = None` may as well come before all else then.
    """
    cleared, rest, asked = [], [], False
    for call in calls:
        clears = call[1] == _set_gradient and call[2][1] is None
        if clears and call[2][0] in first and not asked:
            cleared.append(call)
            continue
        asked = asked or _is_of_passes(call, first)
        rest.append(call)
    return cleared, rest


def _changes_state(call, first) -> bool:
    _, function, arguments, names = call
    if _is_of_passes(call, first):
        return False
    name = getattr(function, "__name__", "")
    if name == "__set__":
        return True
    if "requires_grad" in (names or ()):  # a leaf that is made inside
        return arguments[names.index("requires_grad") - len(names)] is True
    if name == "__get__":
        return function.__self__.__name__ in ("grad", "data")
    return name in _STATE


def changes_state_of_tensors(gm) -> bool:
    """The same question of a graph that somebody else has captured."""
    return any(
        node.target is setattr
        or (node.op == "call_method" and node.target in _STATE)
        or node.kwargs.get("requires_grad") is True
        or "context_fn" in node.kwargs
        for node in gm.graph.nodes
    )


def _has_number(argument) -> bool:
    """Whether a symbol is among the arguments of a call."""
    if isinstance(argument, (SizeText, Applied)):
        return True
    if isinstance(argument, dict):
        return any(map(_has_number, argument.values()))
    if isinstance(argument, slice):
        return any(map(_has_number, (argument.start, argument.stop, argument.step)))
    return isinstance(argument, (list, tuple)) and any(map(_has_number, argument))


def _value(argument, values):
    """An argument with the values of nodes in their places."""
    kind = type(argument)
    if kind is Number:
        return values[argument]
    if kind is list:
        return [_value(a, values) for a in argument]
    if isinstance(argument, tuple) and argument:
        items = [_value(a, values) for a in argument]
        # A named tuple takes its items one by one, a Size all at once.
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if kind is dict:
        return {k: _value(a, values) for k, a in argument.items()}
    if kind is slice:
        parts = (argument.start, argument.stop, argument.step)
        return slice(*(_value(a, values) for a in parts))
    return argument


def _function(calls, count, outputs, inputs):
    """A function that makes captured calls one by one."""

    def run(*given):
        values = [None] * count
        for entry, value in zip(inputs, given, strict=True):
            values[entry] = value
        for i, function, arguments, names in calls:
            found = [_value(a, values) for a in arguments]
            plain = len(found) - len(names or ())
            named = dict(zip(names or (), found[plain:], strict=True))
            values[i] = function(*found[:plain], **named)
        return tuple(values[i] for i in outputs)

    return run
