"""`Tracer` and `symbolic_trace`: a program run on proxies becomes a graph."""

from __future__ import annotations

import inspect
import math
import sys
import types

import taeda
from taeda import nn
from taeda._own import without_library
from taeda.utils import _pytree as pytree

from ._inputs import PH, Inputs, PHBase, PHWithMeta
from ._patches import (
    _orig_module_call,
    _orig_module_getattr,
    _wrapped_fns_to_patch,
    is_tracing,
    tracing,
)
from .graph import Graph
from .graph_module import GENERATED, GraphModule
from .node import map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

# Names that programs import from here, as from torch.fx._symbolic_trace.
_SHARED = (_orig_module_call, _orig_module_getattr, PHBase, PHWithMeta)
is_fx_tracing = is_fx_symbolic_tracing = is_tracing
_constants = (taeda.Tensor, pytree.TreeSpec)


def wrap(fn_or_name):
    """Lets calls of a global function stand in graphs as they are, not traced through.

    To be called where modules define their names, or used as a decorator there.

    Args:
        fn_or_name: the function, or the name under which it is (or will be) global.

    Returns:
        Its argument.

    Raises:
        NotImplementedError: it is called inside a function.
        RuntimeError: the argument is neither a function nor a name.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string "
            "name"
        )
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name, space = getattr(fn_or_name, "__name__", fn_or_name), frame.f_globals
    if GENERATED in space:  # the names of a graph's text go when the text goes
        space[GENERATED].add(name)
    else:
        _wrapped_fns_to_patch[id(space), name] = space
    return fn_or_name


def _line_of(fn) -> str:
    code = fn.__code__
    return f" from {code.co_filename}:{code.co_firstlineno} in {code.co_name}"


class ProxyableClassMeta(type):
    """A metaclass: making an object with a proxy among the arguments is recorded."""

    def __call__(cls, *args, **kwargs):
        found: list[Proxy] = []
        if is_tracing():
            map_aggregate(
                (args, kwargs),
                lambda a: found.append(a) if isinstance(a, Proxy) else None,
            )
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


@wrap
def _assert_is_none(value, msg: str) -> None:
    """What a graph calls for an input that was traced as None."""
    if value is not None:
        raise AssertionError(msg)


class Tracer(Inputs, TracerBase):
    """Traces modules and functions; subclasses change how.

    Args:
        autowrap_modules: modules whose functions are recorded as they are.
        autowrap_functions: further such functions.
        param_shapes_constant: sizes of parameters are numbers, not proxies.
    """

    def __init__(
        self,
        autowrap_modules=(math,),
        autowrap_functions=(),
        param_shapes_constant: bool = False,
    ) -> None:
        chosen = {id(f) for f in autowrap_functions}
        for module in autowrap_modules:
            public = (v for k, v in vars(module).items() if not k.startswith("_"))
            chosen.update(id(v) for v in public if callable(v))
        self._autowrap_function_ids = chosen
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root_module_name, self.submodule_paths = "", None
        self.num_calls: dict[str, int] = {}
        self._start()

    _none_check = staticmethod(_assert_is_none)

    # What subclasses change --------------------------------------------------------

    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        """Whether a module is recorded as a call: those of `nn`, except Sequential."""
        own = f"{without_library(m.__module__)}.".startswith("nn.")
        return own and not isinstance(m, nn.Sequential)

    def call_module(self, m, forward, args, kwargs):
        """A module is called.

        Args:
            m: the module.
            forward: calls it in truth.
            args, kwargs: its arguments.

        Returns:
            A proxy of a call_module node for a leaf, else what `forward` gives.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            times = self.num_calls.get(path, 0)
            self.num_calls[path] = times + 1
            self.module_stack[f"{path}@{times}" if times else path] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val, parameter_proxy_cache: dict):
        """An attribute of a module is read.

        Args:
            attr: its name.
            attr_val: its value.
            parameter_proxy_cache: path -> the proxy that was given out for it.

        Returns:
            A proxy for a parameter of the root (and for a buffer, where
            `proxy_buffer_attributes` asks for it), else the value.
        """
        if isinstance(attr_val, nn.Parameter):
            known = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, taeda.Tensor):
            known = self.root.named_buffers()
        else:
            return attr_val
        path = _path_of(attr_val, known)
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            options = {}
            if self.param_shapes_constant:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(
                    self, node, path, attr_val
                )
            proxy = self.create_proxy("get_attr", path, (), {}, **options)
            parameter_proxy_cache[path] = proxy
        return parameter_proxy_cache[path]

    def path_of_module(self, mod) -> str:
        """The path of a submodule.

        Raises:
            NameError: the root has no such submodule.
        """
        paths = self.submodule_paths
        path = paths.get(mod) if paths else _path_of(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def create_arg(self, a):
        """What stands in a node for an argument; the state of modules becomes get_attr.

        Tensors that belong to no module are kept in the root as `_tensor_constant0`...

        Raises:
            NameError: a parameter does not belong to the root.
            NotImplementedError: a graph cannot hold such a value.
        """
        if isinstance(a, nn.Parameter):
            path = _path_of(a, self.root.named_parameters())
            if path is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", path, (), {})
        path = None
        if isinstance(a, taeda.Tensor):
            path = _path_of(a, self.root.named_buffers())
        elif isinstance(a, nn.Module):
            path = _path_of(a, self.root.named_modules())
        elif isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), items, {})
        if path is None and isinstance(a, _constants):
            path = self.tensor_attrs.get(a)
            if path is None:
                tensor = isinstance(a, taeda.Tensor)
                kind = "_tensor_constant" if tensor else "_tree_spec_constant"
                path = self.tensor_attrs[a] = self._keep(kind, a)
        elif path is None and type(type(a)) is ProxyableClassMeta:
            path = self._keep(f"_{type(a).__name__}_constant_", a)
        if path is not None:
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with this prefix that the root does not have."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def _keep(self, prefix: str, value) -> str:
        name = self.get_fresh_qualname(prefix)
        setattr(self.root, name, value)
        return name

    # The trace ---------------------------------------------------------------------

    def trace(self, root, concrete_args=None) -> Graph:
        """The graph of a module's forward, or of a function.

        Args:
            root: the module or function.
            concrete_args: values of arguments that are fixed, by name; `PH` inside a
                structure stands for what is not.

        Raises:
            TraceError: what the program does depends on a value.
        """
        is_module = isinstance(root, nn.Module)
        if is_module:
            fn = getattr(type(root), self.traced_func_name, None)
            if fn is None:
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            self.root, self.root_module_name = root, root._get_name()
            self.submodule_paths = {m: path for path, m in root.named_modules()}
        else:
            self.root, fn = nn.Module(), root
        if not isinstance(fn, types.FunctionType):
            if hasattr(fn, "_torchdynamo_orig_callable"):
                raise RuntimeError(
                    "Detected that you are using FX to symbolically trace a function "
                    "that taeda.compile returned: trace what it was made of"
                )
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = dict(_tensors_of(self.root))
        space = fn.__globals__
        self.graph._traced = _line_of(inspect.unwrap(fn))
        with tracing(self) as trace:
            fn, args = self.create_args_for_root(fn, is_module, concrete_args)
            trace.visit(space)
            result = (self.create_arg(fn(*args)),)
            kind = inspect.get_annotations(inspect.unwrap(fn)).get("return")
            self.create_node("output", "output", result, {}, type_expr=kind)
        self.submodule_paths = None
        return self.graph

    def __deepcopy__(self, memo):
        import copy

        twin = memo[id(self)] = type(self).__new__(type(self))
        for name, value in vars(self).items():
            shared = name == "_autowrap_search"
            setattr(twin, name, value if shared else copy.deepcopy(value, memo))
        return twin


def _path_of(value, named) -> str | None:
    return next((path for path, found in named if found is value), None)


def _tensors_of(root):
    """(value, path) of tensors that are plain attributes of modules."""
    for path, module in root.named_modules(remove_duplicate=False):
        for name, value in vars(module).items():
            if isinstance(value, _constants):
                yield value, f"{path}.{name}" if path else name


def symbolic_trace(root, concrete_args=None) -> GraphModule:
    """A module that does what another module or a function does, as a graph.

    Args:
        root: the module or function.
        concrete_args: fixed arguments, see `Tracer.trace`.

    Raises:
        TraceError: what the program does depends on a value.

    Example:
        >>> gm = taeda.fx.symbolic_trace(taeda.nn.Sequential(taeda.nn.ReLU()))
        >>> [n.op for n in gm.graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    named = type(root) if isinstance(root, nn.Module) else root
    return GraphModule(tracer.root, graph, named.__name__)
