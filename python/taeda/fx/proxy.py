"""`Proxy`: the values that flow through a program while it is traced."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
from collections import OrderedDict
from dataclasses import fields, is_dataclass

import taeda
from taeda._ops import OpOverload

from ._codegen import magic_methods, reflectable_magic_methods
from ._visit import is_named
from .node import Node, base_types, map_aggregate, map_arg

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "MetaProxy",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The program asks for what is not known while it is traced."""


class Scope:
    """The module whose forward is being traced: its path and class."""

    def __init__(self, module_path: str, module_type) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Writes one scope over another; at the end of the context it is as before."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, dict(vars(scope))
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception) -> None:
        vars(self._scope).update(self._before)


class TracerBase:
    """Records nodes in a graph and hands out proxies for them.

    Attributes:
        graph: the graph that grows.
        record_stack_traces: note on each node which lines of the program made it.
        check_mutable_operations: refuse functions that write to their arguments.
        trace_asserts: record `assert proxy` in place of refusing it.
        proxy_buffer_attributes: give proxies for buffers too.
        traced_func_name: the method of a module that is traced.
    """

    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def _start(self) -> None:
        """No module is being traced yet."""
        self.scope, self.module_stack = Scope("", None), OrderedDict()
        self.node_name_to_scope: dict = {}

    def create_node(
        self, kind: str, target, args, kwargs, name=None, type_expr=None
    ) -> Node:
        """A new node of the graph; see `Graph.create_node`."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = self.scope
        self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        stack = self.module_stack
        node.meta.update(_notes({"nn_module_stack": stack.copy()} if stack else {}))
        if self.record_stack_traces and not node.stack_trace:
            node.meta["stack_trace"] = _program_trace()
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target,
        args,
        kwargs,
        name=None,
        type_expr=None,
        proxy_factory_fn=None,
    ) -> Proxy:
        """A new node for arguments that may hold proxies, and its proxy.

        Args:
            kind, target, args, kwargs, name, type_expr: see `Graph.create_node`; the
                default of a placeholder is `args[0]`.
            proxy_factory_fn: makes the proxy of the node; by default `self.proxy`.
        """
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a):
        """What stands in a node for an argument: nodes for proxies, all else as it is.

        Raises:
            NotImplementedError: a graph cannot hold such a value.
            RuntimeError: the key of a dict is a proxy.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(x) for x in a]
            return type(a)(*items) if is_named(a) else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._create_key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, (OpOverload, enum.Enum, *base_types)):
            return a
        if is_dataclass(a):
            kwargs = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), kwargs)
        if a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key):
        if isinstance(key, str):
            return key

        def refuse(node):
            raise RuntimeError(
                "Keys for dictionaries used as an argument cannot contain a Node. Got "
                f"key: {node}"
            )

        return map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy; a tracer that knows it may say so."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow: "
            f"the truth of {obj} is not known while the program is traced"
        )

    def iter(self, obj: Proxy):
        """An iterator over a proxy; a tracer that knows its length may give one."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is "
            "used in a loop or as a *args or **kwargs function argument. A function "
            "marked by fx.wrap is recorded as one call and may do it"
        )

    def keys(self, obj: Proxy):
        """What `**proxy` and `proxy.keys()` give."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there already."""

    def __init__(self, graph) -> None:
        self.graph = graph
        self._start()


def _notes(otherwise: dict) -> dict:
    """What a new node takes over from the one being run; else what is given."""
    from . import traceback

    if not traceback.has_preserved_node_meta():
        return otherwise
    return traceback._kept(traceback.get_current_meta())


def _program_trace() -> str | None:
    """The lines of the program that are at work, from the first forward on."""
    import traceback
    from pathlib import Path

    own = str(Path(__file__).parent)
    frames = traceback.extract_stack()
    start = next((i for i, f in enumerate(frames) if f.name == "forward"), len(frames))
    library = str(Path(taeda.__file__).parent)
    shown = [
        f
        for f in frames[start:]
        if not f.filename.startswith((own, library)) or "<eval" in f.filename
    ]
    return "".join(traceback.format_list(shown)).strip() or None


def assert_fn(x) -> None:
    """What stands in a graph for `assert x`."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """Stands for the value of a node; what is done with it is recorded as nodes.

    Args:
        node: the node.
        tracer: records; by default new nodes are added to the node's graph.

    Example:
        >>> graph = taeda.fx.Graph()
        >>> x = taeda.fx.Proxy(graph.placeholder("x"))
        >>> (taeda.sin(x) + 1).node.name
        'add'
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer or GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer") or k.startswith("__array"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo):
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __call__(self, *args, **kwargs) -> Proxy:
        return self._method("__call__", args, kwargs)

    def _method(self, name: str, args=(), kwargs=None) -> Proxy:
        return self.tracer.create_proxy(
            "call_method", name, (self, *args), kwargs or {}
        )

    def __iter__(self):
        name, count, _ = _instruction(sys._getframe(1))
        if name == "UNPACK_SEQUENCE":  # a, b = proxy
            return (self[i] for i in range(count))
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            name, _, following = _instruction(sys._getframe(1))
            if (
                "JUMP" in name
                and "TRUE" in name
                and following == "LOAD_ASSERTION_ERROR"
            ):
                _record(assert_fn)(self)
                return True
        return self.tracer.to_bool(self)

    def keys(self):
        """The keys of a dict: a proxy, unless the tracer knows better."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this "
            "call to be recorded, please call fx.wrap('len') at module scope"
        )

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None) -> Proxy:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(a) -> None:
            if isinstance(a, Proxy):
                tracers[a.tracer] = None

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to "
                f"trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        name = orig_method.__name__
        if taeda.overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", name, args, kwargs)
        name = tracer.graph._target_to_str(name)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name)


class Attribute(Proxy):
    """`proxy.name`: a method when it is called, else a node that reads it."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """Made when it is first asked for, since most attributes are methods."""
        if self._node is None:
            read = (self.root, self.attr)
            proxy = self.tracer.create_proxy("call_function", getattr, read, {})
            self._node = proxy.node
        return self._node

    def __call__(self, *args, **kwargs) -> Proxy:
        return self.root._method(self.attr, args, kwargs)


class MetaProxy(Proxy):
    """Computes the value of each call too, on fake tensors: `node.meta["val"]`.

    Args:
        node: its `meta["val"]` is a fake tensor.
        tracer: records.
        fake_mode: the mode of the fake tensors.
    """

    def __init__(self, node: Node, tracer=None, fake_mode=None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"Meta{super().__repr__()}"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=(), kwargs=None) -> MetaProxy:
        mode = next((a.fake_mode for a in args if isinstance(a, cls)), None)
        if mode is None:
            raise AssertionError("MetaProxy: no MetaProxy is among the arguments")
        made = super().__torch_function__(orig_method, types, args, kwargs)

        def value(a):
            return a.node.meta["val"] if isinstance(a, Proxy) else a

        given = map_aggregate((args, kwargs or {}), value)
        with mode:
            made.node.meta["val"] = orig_method(*given[0], **given[1])
        return cls(made.node, made.tracer, mode)


def _of_the_parameter(name: str) -> property:
    about = f"`{name}` of the parameter."
    return property(lambda self: getattr(self.param, name), doc=about)


def _asked_of_the_parameter(name: str):
    def asked(self, *args, **kwargs):
        return getattr(self.param, name)(*args, **kwargs)

    asked.__name__, asked.__qualname__ = name, f"ParameterProxy.{name}"
    asked.__doc__ = f"`{name}()` of the parameter."
    return asked


class ParameterProxy(Proxy):
    """The proxy of a parameter, whose sizes are known.

    `shape`, `ndim`, `size()`, `dim()`, `numel()` and `nelement()` are the parameter's.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param) -> None:
        self.param, self.name = param, name
        assert isinstance(param, taeda.nn.Parameter), f"{name} is a {type(param)}"
        super().__init__(node, tracer)

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape, ndim = map(_of_the_parameter, ("shape", "ndim"))
    size, dim, numel, nelement = map(
        _asked_of_the_parameter, ("size", "dim", "numel", "nelement")
    )


def _instruction(frame) -> tuple[str, int, str]:
    """The instruction at which a frame stands, its argument, and the one after it.

    A conversion to bool, which has an instruction of its own from Python 3.13 on, is
    passed over.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    argument = code[at + 1]
    if at and code[at - 2] == dis.EXTENDED_ARG:
        argument |= code[at - 1] << 8
    shown = (dis.opname[op] for op in code[at::2])
    names = (n for n in shown if n not in ("CACHE", "NOT_TAKEN", "TO_BOOL"))
    return next(names), argument, next(names, "")


def _record(target, swapped: bool = False):
    def recorded(self, *others) -> Proxy:
        args = (*others, self) if swapped else (self, *others)
        return self.tracer.create_proxy("call_function", target, args, {})

    return recorded


# Set from outside, so that proxies stay hashable though they have an `__eq__`.
for _name in magic_methods:
    if (_target := getattr(operator, _name, None)) is not None:
        _bare = _name.strip("_")
        setattr(Proxy, f"__{_bare}__", _record(_target))
        if _name in reflectable_magic_methods:
            setattr(Proxy, f"__r{_bare}__", _record(_target, swapped=True))
