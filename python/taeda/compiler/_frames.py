"""What the capture of bytecode needs of the package, and its entry."""

from __future__ import annotations

import builtins
import copyreg
import enum
import functools
import os
import random
import sys
import warnings
from operator import attrgetter, getitem

import taeda
from taeda import _C, _dynamo, overrides
from taeda._dynamo.exc import BackendCompilerFailed, TorchDynamoException
from taeda.nn.parameter import is_lazy

from . import _marks
from ._events import observe

__all__ = ["GraphBreak", "capture"]


class GraphBreak(BaseException):
    """Unwinds C code that a graph ends in; programs never see one."""


# Functions that make tensors from none: their stand-ins are made on `meta`.
_FACTORIES = frozenset(
    "zeros ones empty full arange linspace logspace eye rand randn randint randperm"
    " tensor as_tensor asarray scalar_tensor empty_strided tril_indices triu_indices"
    " normal range hann_window hamming_window".split()
)
# Modules in C whose functions do or read what a graph does not know of.
_UNSAFE_MODULES = frozenset(
    "time posix _io io _thread _socket gc select signal _random marshal"
    " faulthandler _tracemalloc atexit".split()
)
_UNSAFE = frozenset(
    (print, input, open, exec, eval, globals, locals, breakpoint, __import__)
    + (_dynamo.graph_break, builtins.__build_class__)
    # They look at the interpreter's frames: Note [Frames of calls].
    + (warnings.warn, warnings.warn_explicit, sys._getframe, sys._current_frames)
)


def _twin(tensor, sizes, strides):
    """A tensor without memory that has a tensor's geometry, dtype and class.

    Args:
        sizes, strides: those that it has in place of the tensor's, with symbols; or
            None.
    """

    def empty():
        return taeda.empty_strided(sizes, strides, dtype=tensor.dtype, device="meta")

    if is_lazy(tensor):
        return type(tensor)(tensor.requires_grad, device="meta")
    with (
        overrides.DisableTorchFunction(),
        taeda.inference_mode(tensor.is_inference()),
    ):
        if sizes is None:
            sizes, strides = tensor.shape, tensor.stride()
        made = empty()
        if type(tensor) is taeda.nn.Parameter:
            return taeda.nn.Parameter(made, tensor.requires_grad)
        if tensor.requires_grad:
            made.requires_grad_()
            # What another call made may be written to where a leaf may not.
            made = made if tensor.is_leaf else empty().copy_(made)
        if type(tensor) is taeda.Tensor:
            return made
        if not tensor.is_leaf:
            return made.as_subclass(type(tensor))
        with taeda.no_grad():
            return made.as_subclass(type(tensor)).requires_grad_(tensor.requires_grad)


def _last_mode():
    """The mode that is asked first."""
    return _C._get_function_stack_at(_C._len_torch_function_stack() - 1)


# Note [Frames of calls]: its line is its first one.
_passing = lambda function, args, kwargs: function(*args, **kwargs)


@functools.cache
def _module():
    from taeda import _capture
    from taeda.compiler import _counted, _operators

    from . import _sizes

    _capture.setup(
        {
            "tensor_base": _C.TensorBase,
            "tensor": taeda.Tensor,
            "parameter": taeda.nn.Parameter,
            "module": taeda.nn.Module,
            "module_getattr": taeda.nn.Module.__getattr__,
            "twin": _twin,
            "meta": taeda.device("meta"),
            "grad_setter": _C._set_grad_enabled,
            "break_error": GraphBreak,
            "compiler_error": TorchDynamoException,
            "device_type": taeda.device,
            "dtype_type": taeda.dtype,
            "push_mode": _C._push_on_torch_function_stack,
            "pop_mode": _C._pop_torch_function_stack,
            "last_mode": _last_mode,
            "mode_count": _C._len_torch_function_stack,
            "mode_at": _C._get_function_stack_at,
            "has_modes": _C._has_function_modes,
            "default_device": _C._get_default_device,
            "getitem": getitem,
            "factories": _FACTORIES,
            "readers": _operators.READERS,
            "counted": _counted.RULES,
            "numbered": _counted.OF_NUMBERS,
            "holds": _operators.holds,
            "list_handler": _operators.tolist,
            "random_class": random.Random,
            "draw_handler": _operators.draw,
            "enum_type": enum.Enum,
            "cpu_tensor": taeda.empty(0),
            "unbind": taeda.Tensor.unbind,
            "mode_types": {taeda.no_grad, taeda.enable_grad, taeda.inference_mode},
            "mode_setter": _capture.set_modes,
            "autocast_setter": _capture.set_autocast,
            "default_dtype": taeda.get_default_dtype,
            "default_dtype_setter": taeda.set_default_dtype,
            "handlers": _operators.table(),
            "apply_handler": _operators.apply,
            "builtins": builtins,
            "array_handler": _operators.of_array,
            "numpy_handler": _operators.of_tensor,
            "make_instance": _operators.make_instance,
            "whole_handler": _operators.whole,
            "assertion": _operators.assert_true,
            "function_setter": _C._set_torch_function_enabled,
            "operator_handler": _operators.operator,
            "function_base": _C._FunctionBase,
            "make_closure": _operators.make_closure,
            "make_handle": _operators.make_handle,
            "passing_code": _passing.__code__,
            "level_types": _operators.level_types(),
            "operator_types": _operators.operator_types(),
            "node_marker": Number,
            "observer": observe,
            "lock": _marks.LOCK,
            "allowed": _marks.ALLOWED,
            "substitutes": _marks.SUBSTITUTES,
            "disabled_code": _marks.DISABLED_CODE,
            "strict_type": _marks.error_on_graph_break,
            "unsafe": _unsafe(),
            "unsafe_modules": _UNSAFE_MODULES,
            **_sizes.library_part(),
        }
    )
    from taeda import _logging
    from taeda._dynamo import config

    # A thread that holds the lock is not in the child.
    os.register_at_fork(after_in_child=_marks.LOCK._at_fork_reinit)
    config.hand_over(_capture)
    _logging.hand_over(_capture)
    return _capture


def _unsafe():
    """Functions whose effect no graph holds: they change how later calls compute."""
    names = (
        "_push_saved_tensors_hooks _pop_saved_tensors_hooks _node_hooks"
        " _disable_saved_tensors_hooks _queue_callback _set_default_device"
        " set_num_threads _run_backward set_anomaly_enabled"
    )
    _marks.DISALLOWED.update(
        _UNSAFE,
        (getattr(_C, name) for name in names.split()),
        (_C._apply_function, _C._functorch.loops),
        (taeda.autograd.backward, taeda.Generator),
    )
    return _marks.DISALLOWED


def _call_backend(backend, graph, fullgraph, place_of=None):
    """What the backend makes of a captured graph: a function of its inputs.

    None leaves the graph to be run as it was captured. `place_of` gives the places of
    inputs other names.

    Raises:
        BackendCompilerFailed: what the backend raised.
    """
    from taeda._dynamo import config

    if getattr(backend, "takes_calls", False):
        return backend(*graph, fullgraph=fullgraph)
    from ._graphs import graph_module

    module, inputs = graph_module(*graph, place_of=place_of)
    try:
        made = backend(module, inputs)
        if not callable(made):
            raise TypeError(f"it returned a {type(made).__name__}, not a function")
    except Exception as error:
        from ._backends import name_of
        from ._events import warn

        failed = BackendCompilerFailed(name_of(backend), error)
        if not config.suppress_errors:
            raise failed from error
        warn("compile: %s; the graph runs as it was captured", failed)
        return None
    return made


class Number(int):
    """The number of a node, where a captured graph has one among its arguments."""


# What was captured last of functions that are made anew, until everything is
# forgotten; each access is one operation on the dict.
_SHARED: dict = {}
_MOST_SHARED = 256


def _key_of(function, asked):
    """What functions have in common that share what is captured; None for others.

    Functions of modules are made once, and each `compile` of one has its own captures.
    """
    anew = "<locals>" in function.__qualname__ or "<lambda>" in function.__qualname__
    try:
        hash(asked)
    except TypeError:
        return None
    # The globals live as long as the code's captures, which look names up in them.
    return (function.__code__, id(function.__globals__), *asked) if anew else None


def capture(
    function,
    fullgraph: bool = False,
    backend=None,
    dynamic=None,
    guard_filter=None,
    recompile_limit: int | None = None,
    name: str | None = None,
    share: bool = False,
    place_of=None,
):
    """A function whose tensor calls are captured as graphs and run from there.

    Args:
        function: a Python function.
        fullgraph: refuse what is not one graph.
        backend: called with an `fx.GraphModule` and its first inputs, returns what
            computes the outputs. None runs the captured calls as they are.
        dynamic: whether sizes and integers are symbols; None for those that differed
            between two captures.
        guard_filter: takes a list of `GuardFilterEntry`, returns which guards stay.
        recompile_limit: how often one place is captured; None for the configured one.
        name: an identifier for tools, kept as `compiled_name`.
        share: whether functions of the same code, which a program makes anew for each
            call, share what is captured, where the same is asked for them.
        place_of: takes the name of an input's place, returns what the backend is told.

    Returns:
        A callable with `explain()`.

    Raises:
        Unsupported: when called, of what breaks a graph under `fullgraph`, or raises
            while it is captured.
        BackendCompilerFailed: when called, of what the backend raised.
    """

    def compile_graph(graph):
        return _call_backend(backend, graph, fullgraph, place_of)

    chosen = None
    if backend is not None:
        if not getattr(backend, "takes_calls", False):
            from . import _graphs  # noqa: F401 (changes tables that guards look at)

        chosen = compile_graph
    config = sys.modules.get("taeda._dynamo.config")
    passes = config is not None and config.compiled_autograd
    asked = (backend, fullgraph, dynamic, guard_filter, recompile_limit, passes)
    key = _key_of(function, asked) if share else None
    known = None if key is None else _SHARED.get(key)
    if known is not None and not _module().has_room(known):
        known = None  # the limit is one for each function, not for its code
    made = _module().compile(function, chosen, Number, fullgraph, known)
    if known is None:
        made.set_dynamic(dynamic)
        # Passes that are compiled by themselves are called from outside of graphs.
        made.set_takes_passes(getattr(backend, "takes_passes", False) and not passes)
        if recompile_limit is not None:
            made.set_recompile_limit(recompile_limit)
        if guard_filter is not None:
            from ._guards import filtering

            made.set_guard_filter(filtering(guard_filter))
        if key is not None:
            _SHARED[key] = made.shared()
            if len(_SHARED) > _MOST_SHARED:
                _SHARED.pop(next(iter(_SHARED)), None)
    # Copies and pickles take it for what it is made of: a function.
    copyreg.pickle(type(made), attrgetter("__qualname__"))
    functools.update_wrapper(made, function)
    made._torchdynamo_orig_callable = function
    made.compiled_name = name
    if passes:
        from ._passes import around

        return around(made, backend, fullgraph, dynamic)
    return made
