"""What the capture of bytecode needs of the package, and its entry."""

from __future__ import annotations

import enum
import functools
import operator
from operator import getitem

import taeda
from taeda import _C, _dynamo
from taeda._dynamo.exc import Unsupported

__all__ = ["GraphBreak", "capture"]


class GraphBreak(BaseException):
    """Unwinds C code that a graph ends in; programs never see one."""


# Functions that make tensors from none: their stand-ins are made on `meta`.
_FACTORIES = frozenset(
    "zeros ones empty full arange linspace logspace eye rand randn randint randperm"
    " tensor as_tensor asarray scalar_tensor empty_strided tril_indices triu_indices"
    " normal range hann_window hamming_window".split()
)
# Functions whose result is what a tensor holds.
_READERS = frozenset(
    "item tolist numpy __bool__ __int__ __float__ __index__ __complex__ __array__"
    " is_nonzero equal allclose nonzero unique masked_select data_ptr backward"
    " register_hook register_post_accumulate_grad_hook"
    " __contains__ __repr__ __str__ __format__ __reduce_ex__ __deepcopy__".split()
)
# Modules in C whose functions do or read what a graph does not know of.
_UNSAFE_MODULES = frozenset(
    "time posix _io io _thread _socket gc select signal _random marshal"
    " faulthandler _tracemalloc atexit".split()
)
_UNSAFE = frozenset(
    (print, input, open, exec, eval, globals, locals, breakpoint, __import__, id)
    + (_dynamo.graph_break,)
)


def _twin(tensor, is_parameter: bool):
    """A tensor without memory that has a tensor's geometry, dtype and class."""

    def empty():
        return taeda.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta"
        )

    with taeda.inference_mode(tensor.is_inference()):
        made = empty()
        if is_parameter:
            return taeda.nn.Parameter(made, tensor.requires_grad)
        if not tensor.requires_grad:
            return made
        made.requires_grad_()
        # What another call made may be written to where a leaf may not.
        return made if tensor.is_leaf else empty().copy_(made)


@functools.cache
def _module():
    from taeda import _capture

    _capture.setup(
        {
            "tensor_base": _C.TensorBase,
            "tensor": taeda.Tensor,
            "parameter": taeda.nn.Parameter,
            "module_getattr": taeda.nn.Module.__getattr__,
            "twin": _twin,
            "meta": taeda.device("meta"),
            "grad_setter": _C._set_grad_enabled,
            "break_error": GraphBreak,
            "device_type": taeda.device,
            "dtype_type": taeda.dtype,
            "push_mode": _C._push_on_torch_function_stack,
            "pop_mode": _C._pop_torch_function_stack,
            "getitem": getitem,
            "factories": _FACTORIES,
            "readers": _READERS,
            "enum_type": enum.Enum,
            "cpu_tensor": taeda.empty(0),
            "unbind": taeda.Tensor.unbind,
            "mode_types": {taeda.no_grad, taeda.enable_grad, taeda.inference_mode},
            "mode_setter": _capture.set_modes,
            "unsafe": _unsafe(),
            "unsafe_modules": _UNSAFE_MODULES,
        }
    )
    return _capture


def _unsafe():
    """Functions whose effect no graph holds: they change how later calls compute."""
    transforms = vars(_C._functorch).values()
    autocast = (
        "autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache"
        " set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled"
    )
    settings = [getattr(_C, name) for name in autocast.split()]
    return _UNSAFE.union((f for f in transforms if callable(f)), settings)


class _Node(int):
    """The number of a node, where a graph has one among its arguments."""


def _graph_module(nodes, outputs):
    """A captured graph as an `fx.GraphModule`, and the tensors it begins with."""
    from taeda import fx

    graph = fx.Graph()
    made, inputs = [], []

    def named(argument):
        return fx.node.map_aggregate(
            argument, lambda a: made[a] if isinstance(a, _Node) else a
        )

    for node in nodes:
        if isinstance(node[0], str):
            made.append(graph.placeholder(_identifier(node[0])))
            inputs.append(node[1])
            continue
        function, arguments, names = node
        count = len(arguments) - len(names or ())
        args = tuple(named(a) for a in arguments[:count])
        kwargs = dict(zip(names or (), map(named, arguments[count:]), strict=True))
        made.append(_add_call(graph, function, args, kwargs))
    graph.output(tuple(made[i] for i in outputs))
    for node in reversed(made):
        # Elements of several results that nobody reads.
        if node.op == "call_function" and node.target is getitem and not node.users:
            graph.erase_node(node)
    return fx.GraphModule({}, graph), inputs


def _identifier(place: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in place).strip("_").lower()


def _add_call(graph, function, args, kwargs):
    owner = getattr(function, "__objclass__", None)
    if owner is not None and issubclass(taeda.Tensor, owner):
        name = function.__name__
        if hasattr(operator, name) and name.startswith("__"):
            return graph.call_function(getattr(operator, name), args, kwargs)
        return graph.call_method(name, args, kwargs)
    if getattr(function, "__name__", "") in ("__get__", "__set__"):
        access = getattr if function.__name__ == "__get__" else setattr
        name = function.__self__.__name__
        return graph.call_function(access, (args[0], name, *args[1:]))
    return graph.call_function(function, args, kwargs)


def capture(function, fullgraph: bool = False, backend=None):
    """A function whose tensor calls are captured as graphs and run from there.

    Args:
        function: a Python function.
        fullgraph: refuse what is not one graph.
        backend: called with an `fx.GraphModule` and its first inputs, returns what
            computes the outputs. None runs the captured calls as they are.

    Returns:
        A callable with `explain()`.

    Raises:
        Unsupported: when called, of what breaks a graph under `fullgraph`.
    """

    def compile_graph(graph):
        return backend(*_graph_module(*graph))

    chosen = None if backend is None else compile_graph
    made = _module().compile(function, chosen, _Node, fullgraph, Unsupported)
    return functools.update_wrapper(made, function)
