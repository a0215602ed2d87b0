"""Records the graph of a program that is exported."""

from __future__ import annotations

import linecache
import os
import sys
from collections import OrderedDict

import taeda
from taeda.fx.experimental._above import PreDispatchMode
from taeda.fx.experimental.proxy_tensor import PythonKeyTracer
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from ._inputs import identifier

__all__ = ["ExportMode", "ExportTracer", "force_name", "names_of", "program_trace"]

_PACKAGE = os.path.dirname(taeda.__file__) + os.sep
_LAYERS = os.path.join(_PACKAGE, "nn", "modules") + os.sep
_HIDDEN = tuple(_LAYERS + n for n in ("_hooks.py", "module.py", "container.py"))

_OUTERMOST = "run_exported"  # the function of _trace.py that calls the program


def _is_shown(file: str) -> bool:
    if not file.startswith(_PACKAGE):
        return not file.startswith("<frozen")
    return file.startswith(_LAYERS) and file not in _HIDDEN


def program_trace(frame=None) -> str:
    """The lines of the program that are at work, the innermost last; else no text."""
    frame, shown = frame or sys._getframe(1), []
    while frame is not None and frame.f_code.co_name != _OUTERMOST:
        file = frame.f_code.co_filename
        if _is_shown(file):
            line = linecache.getline(file, frame.f_lineno).strip()
            head = f'File "{file}", line {frame.f_lineno}, in {frame.f_code.co_name}'
            shown.append(f"{head}\n    {line}")
        frame = frame.f_back
    return "" if frame is None else "\n  ".join(reversed(shown))


def force_name(node, name: str) -> None:
    """Gives a node this name, though it be one that Python has (`input`)."""
    node.name = name
    node.graph._graph_namespace.associate_name_with_obj(name, node)


class ExportTracer(PythonKeyTracer):
    """Makes tensors that are neither inputs nor state inputs of their own.

    Args:
        paths: id of a module -> its path.
        attributes: id of a tensor that is an attribute of a module -> its path.
        preserved: paths of modules whose calls are noted in `calls`.
    """

    def __init__(self, paths: dict, attributes: dict, preserved=()) -> None:
        super().__init__()
        self.paths, self.attributes, self.preserved = paths, attributes, preserved
        self.first_user_input = None
        self.constants: dict[str, taeda.Tensor] = {}  # target -> tensor
        self.constant_names: dict[str, str] = {}  # placeholder -> target
        self.calls: dict[str, tuple] = {}
        self.fake_mode = None  # of the values that nodes note

    def values(self) -> list:
        """(tensor, proxy) of all tensors that are known."""
        return list(self.known.values())

    def path_of_module(self, mod) -> str:
        """The path of a submodule; of one from elsewhere its class's name."""
        return self.paths.get(id(mod), type(mod).__name__)

    def call_module(self, m, forward, args, kwargs):
        """Traces through a module; nodes note that they are its."""
        path = self.paths.get(id(m))
        if path is None:
            return forward(*args, **kwargs)
        times = self.num_calls.get(path, 0)
        self.num_calls[path] = times + 1
        key = f"L__self__{identifier(path)}" + (f"@{times}" if times else "")
        kind = type(m)
        self.module_stack[key] = (path, f"{kind.__module__}.{kind.__qualname__}")
        try:
            result = forward(*args, **kwargs)
        finally:
            self.module_stack.popitem()
        if path in self.preserved:
            self.calls[path + (f"@{times}" if times else "")] = (args, kwargs, result)
        return result

    def create_node(self, kind: str, target, args, kwargs, name=None, type_expr=None):
        """As always; calls note the lines of the program that made them."""
        made = super().create_node(kind, target, args, kwargs, name, type_expr)
        if kind == "call_function":
            made.meta.setdefault("nn_module_stack", OrderedDict())
            trace = program_trace()
            if trace:
                made.meta["stack_trace"] = trace
        return made

    def create_arg(self, a):
        """As always; a tensor from elsewhere becomes an input."""
        if isinstance(a, taeda.Tensor) and id(a) not in self.known:
            self.lift(a)
        return super().create_arg(a)

    def lift(self, tensor) -> None:
        """Makes a tensor an input of the graph, before those of the caller.

        Raises:
            RuntimeError: it is one that the trace has not seen being made.
        """
        from taeda._subclasses.fake_tensor import is_fake

        if is_fake(tensor):
            raise RuntimeError(
                f"export: a tensor of shape {tuple(tensor.shape)} was made where the "
                "trace does not see it"
            )
        target = self.attributes.get(id(tensor))
        if target is None:
            count = sum(t.startswith("lifted_tensor_") for t in self.constants)
            target = f"lifted_tensor_{count}"
        name = f"c_{identifier(target)}"
        with self.graph.inserting_before(self.first_user_input):
            node = self.graph.placeholder(name)
        self.constants[target], self.constant_names[node.name] = tensor, target
        self.track(tensor, Proxy(node, self))
        if self.fake_mode is not None:
            node.meta["val"] = self.fake_mode.from_tensor(tensor)


class ExportMode(PreDispatchMode):
    """Records the calls of a program.

    Attributes: internal, the places among the guards of those that operators asked for.
    """

    internal: frozenset = frozenset()
    constant_results = (int,)
    differentiates = False

    def record_function(self, function, operands: tuple, own: bool = False):
        """As always, with what nodes of exported programs note."""
        from ._branches import record

        return record(self, function, operands, own)

    def compute(self, func, args, kwargs):
        """The results of a call; notes which guards it leaves."""
        before = len(self.env.guards)
        result = super().compute(func, args, kwargs)
        self.internal |= set(range(before, len(self.env.guards)))
        return result

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        aten = taeda.ops.aten
        if func is aten._to_copy.default and list(kwargs or ()) == ["dtype"]:
            # The method `to` asks for the copy past the operator of its name.
            func, args, kwargs = aten.to.dtype, (*args, kwargs["dtype"]), {}
        return super().__torch_dispatch__(func, types, args, kwargs)


def names_of(values, tracer) -> list:
    """What stands in a signature for values of a trace."""
    from .graph_signature import ConstantArgument, SymIntArgument, TensorArgument

    found = []
    for value in pytree.tree_leaves(values):
        node = tracer.create_arg(value)
        if isinstance(value, taeda.Tensor):
            found.append(TensorArgument(node.name))
        elif isinstance(node, taeda.fx.Node):
            found.append(SymIntArgument(node.name))
        else:
            found.append(ConstantArgument("", value))
    return found
