"""`make_fx`: runs a program on tensors and records its operators in a graph."""

from __future__ import annotations

import contextlib
import inspect

import taeda
from taeda import nn
from taeda.fx._symbolic_trace import PH, Tracer
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree
from taeda.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

from ._sizes import Sizes

__all__ = [
    "DecompositionInterpreter",
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "disable_proxy_modes_tracing",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "make_fx",
    "py_sym_types",
]

py_sym_types = (taeda.SymInt, taeda.SymFloat, taeda.SymBool)


class PythonKeyTracer(Tracer):
    """Records what a mode tells it; the program itself runs on tensors, not proxies."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.graph = Graph(tracer_cls=Tracer)
        self.root, self.tensor_attrs = nn.Module(), {}
        # By the id of a tensor: the tensor, which lives as long, and its proxy.
        self.known: dict[int, tuple] = {}
        self.sizes = Sizes(self)
        # A float that stands for a symbolic one in a call, and how often it was seen.
        self.floats: dict[float, list] = {}

    def call_module(self, m, forward, args, kwargs):
        """Modules are traced through."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val, parameter_proxy_cache: dict):
        """Attributes of modules are what they are."""
        return attr_val

    def create_arg(self, a):
        """What stands in a node: proxies of tensors that are known, constants else."""
        if isinstance(a, taeda.Tensor) and id(a) in self.known:
            return self.known[id(a)][1].node
        if isinstance(a, py_sym_types):
            return self.sizes.node(a)
        if type(a) is float and a in self.floats:
            self.floats[a][1] += 1
            return self.sizes.node(self.floats[a][0])
        if isinstance(a, nn.Parameter):
            path = self.tensor_attrs.get(a)
            if path is None:
                path = self.tensor_attrs[a] = self._keep("_param_constant", a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, nn.Module):
            raise NotImplementedError(f"argument of type: {type(a)}")
        return super().create_arg(a)

    def knows(self, tensor) -> bool:
        """Whether a tensor is one that the trace has seen being made."""
        return id(tensor) in self.known

    def track(self, value, proxy: Proxy) -> None:
        """Notes that the tensors of a value are a proxy's; its entries get nodes."""
        if isinstance(value, taeda.Tensor):
            self.known[id(value)] = value, proxy
            self.sizes.learn(value, proxy)
            _describe(proxy.node, value)
        elif isinstance(value, py_sym_types):
            self.sizes.learn_number(value, proxy)
            proxy.node.meta["val"] = value
        elif isinstance(value, (tuple, list)):
            proxy.node.meta["val"] = value
            for i, entry in enumerate(value):
                if isinstance(entry, (taeda.Tensor, tuple, list)):
                    self.track(entry, proxy[i])


def _describe(node, value) -> None:
    from taeda.fx.passes.shape_prop import _extract_tensor_metadata

    symbolic = any(isinstance(n, taeda.SymInt) for n in value.shape)
    node.meta["val"] = _fake_of(value)
    if not symbolic:
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)


def _fake_of(value):
    """What a node keeps of a value: its geometry, not its memory."""
    from taeda._subclasses import FakeTensorMode
    from taeda._subclasses.fake_tensor import is_fake

    if is_fake(value):
        # Without the graph by which autograd would know what made it.
        return value if value.grad_fn is None else value.without_history()
    with _disable_current_modes():
        return FakeTensorMode().from_tensor(value)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Records every operator below autograd.

    Args:
        tracer: its graph grows.
        tracing_mode: "real", "fake" or "symbolic".
        decomposition_table: operator -> a function that computes it by others.
    """

    item_name = "_local_scalar_dense"
    env = None  # of symbols, where there are any
    fake_mode = None  # which tells of numbers that are taken out of tensors
    constant_results: tuple = ()  # what branches may return besides tensors
    differentiates = True  # whether the program may take gradients

    def __init__(self, tracer, tracing_mode="real", decomposition_table=None) -> None:
        super().__init__()
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.table = decomposition_table or {}
        # By the id of a tensor made of numbers in the program: its value.
        self.constants: dict[int, taeda.Tensor] = {}
        self.enabled = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.enabled:
            return func(*args, **kwargs)
        if self.is_for_a_class(args, kwargs):
            return NotImplemented
        if func in self.table:
            with self.again():
                result = self.table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        aten = taeda.ops.aten
        if func in (aten._local_scalar_dense.default, aten.item.default):
            return self._number(func, args[0])
        if func is aten.lift_fresh.default:
            return self._constant(args[0])
        result = self.compute(func, args, kwargs)
        self._follow_constants(func, args, kwargs, result)
        name = self.tracer.graph._target_to_str(func.overloadpacket.__name__)
        proxy = self.tracer.create_proxy("call_function", func, args, kwargs, name)
        self.tracer.track(result, proxy)
        return result

    def compute(self, func, args, kwargs):
        """The results of a call."""
        with self.laying_out():
            return func(*args, **kwargs)

    def laying_out(self):
        """A context around an operator, which asks of sizes what its result's are."""
        return contextlib.nullcontext() if self.env is None else self.env.laying_out()

    def is_for_a_class(self, args, kwargs) -> bool:
        """Whether a tensor has operators of its own, whose calls are recorded instead.

        Inputs of the trace have none: the graph gets them as they are.
        """
        from taeda._subclasses.fake_tensor import is_fake

        plain = taeda.Tensor.__torch_dispatch__
        return any(
            isinstance(a, taeda.Tensor)
            and type(a).__torch_dispatch__ is not plain
            and id(a) not in self.tracer.known
            and not is_fake(a)
            for a in pytree.tree_leaves((args, kwargs))
        )

    def at_end(self) -> None:
        """Called when the program has run."""

    def record_function(self, function, operands: tuple, own: bool = False):
        """Runs a function that an operator takes, and records it by itself."""
        from ._branches import record

        return record(self, function, operands, own)

    def control(self, name: str, *args):
        """Records a call of an operator of `taeda._higher_order_ops`."""
        from . import _loops

        return _loops.RECORDERS[name](self, *args)

    def again(self):
        """A context in which the mode sees what its handler calls."""
        return self

    def learn_item(self, tensor, number) -> None:
        """A number without a hint was taken out of a fake tensor."""
        if self.enabled and self.tracer.knows(tensor):
            func = getattr(taeda.ops.aten, self.item_name).default
            proxy = self.tracer.create_proxy(
                "call_function", func, (tensor,), {}, self.item_name
            )
            self.tracer.track(number, proxy)

    def _constant(self, tensor):
        """A tensor of numbers: the graph copies it each time, so that it stays so."""
        tracer, func = self.tracer, taeda.ops.aten.clone.default
        result = taeda.ops.aten.lift_fresh.default(tensor)
        proxy = tracer.create_proxy(
            "call_function", func, (tensor,), {}, "lift_fresh_copy"
        )
        tracer.track(result, proxy)
        with _unrecorded():
            # The graph's own stays as it is when the program writes to this one.
            self._know(result, tensor.clone())
        return result

    def _know(self, tensor, value) -> None:
        """Notes the value of a tensor, in itself where it is a fake one."""
        from taeda._subclasses.fake_tensor import is_fake

        self.constants[id(tensor)] = value
        if is_fake(tensor):
            single = value is not None and value.numel() == 1
            tensor.constant = value if single else None

    def _follow_constants(self, func, args, kwargs, result) -> None:
        """Notes what a call makes of tensors whose values are known, or forgets them.

        Of results, single numbers alone are worked out: a program asks for no others.
        """
        if not self.constants:
            return
        made = [t for t in pytree.tree_leaves(result) if isinstance(t, taeda.Tensor)]
        sizes = [size for tensor in made for size in tensor.shape]
        # Of sizes that are symbols nothing may be asked.
        small = all(type(size) is int and size <= 1 for size in sizes)
        if not (func._schema.is_mutable or small):
            return
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, taeda.Tensor)]
        known = tensors and all(id(t) in self.constants for t in tensors)
        if not known or taeda.Tag.nondeterministic_seeded in func.tags:
            self._forget(_written_by(func, args, kwargs))
            return
        values = [self.constants.get(id(leaf), leaf) for leaf in leaves]
        with _unrecorded():
            args, kwargs = pytree.tree_unflatten(values, spec)
            found = func(*args, **kwargs)
        found = [t for t in pytree.tree_leaves(found) if isinstance(t, taeda.Tensor)]
        for tensor, value in zip(made, found, strict=True):
            self._know(tensor, value)

    def _forget(self, tensors) -> None:
        """Values of these tensors, and of their views, are not known any more."""
        found = [self.constants[id(t)] for t in tensors if id(t) in self.constants]
        places = {value.untyped_storage().data_ptr() for value in found}
        for key, value in list(self.constants.items()):
            if value.untyped_storage().data_ptr() in places:
                self._know(self.tracer.known[key][0], None)
                del self.constants[key]

    def _number(self, func, tensor):
        known = id(tensor) in self.tracer.known
        if id(tensor) not in self.constants and known:
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor "
                f"with {func} - erroring out! It's likely that this is caused by "
                "data-dependent control flow or similar."
            )
        with _unrecorded():
            return self.constants.get(id(tensor), tensor).item()


def get_proxy_mode():
    """The mode of the trace under way, or None."""
    from ._above import innermost

    if innermost() is not None:
        return innermost()
    found = _get_current_dispatch_mode_stack()
    return next((m for m in found[::-1] if isinstance(m, ProxyTorchDispatchMode)), None)


get_innermost_proxy_mode = get_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """A context: what is done inside is not recorded."""
    mode = get_proxy_mode()
    before = mode is not None and mode.enabled
    if mode is not None:
        mode.enabled = False
    try:
        yield mode
    finally:
        if mode is not None:
            mode.enabled = before


@contextlib.contextmanager
def _unrecorded():
    """A context: what is done inside is done on real tensors, and seen by no mode."""
    with disable_proxy_modes_tracing(), _disable_current_modes():
        yield


def _written_by(func, args, kwargs) -> list:
    """The arguments that an operator writes to."""
    arguments = func._schema.arguments
    given = {a.name: v for a, v in zip(arguments, args, strict=False)} | kwargs
    written = [
        given.get(a.name)
        for a in arguments
        if a.alias_info is not None and a.alias_info.is_write
    ]
    return [t for t in pytree.tree_leaves(written) if isinstance(t, taeda.Tensor)]


def _with_names(f, count: int):
    """The function with `count` named parameters, which name the graph's inputs."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is not None and not code.co_flags & inspect.CO_VARARGS:
        return f
    names = ", ".join(f"arg{i}" for i in range(count))
    space = {"f": f}
    exec(f"def call({names}):\n    return f({names})", space)
    return space["call"]


class _Run:
    """One trace; see `make_fx`."""

    def __init__(self, f, table, tracing_mode: str, allow_real: bool, above) -> None:
        self.f, self.tracing_mode = f, tracing_mode
        self.tracer = PythonKeyTracer()
        from ._above import PreDispatchMode

        kind = PreDispatchMode if above else ProxyTorchDispatchMode
        self.mode = kind(self.tracer, tracing_mode, table)
        self.env = self.fake_mode = None
        if tracing_mode != "real":
            from taeda._subclasses import FakeTensorMode
            from taeda.fx.experimental.symbolic_shapes import ShapeEnv

            self.env = ShapeEnv() if tracing_mode == "symbolic" else None
            self.mode.env = self.env
            self.fake_mode = FakeTensorMode(
                shape_env=self.env, allow_non_fake_inputs=allow_real
            )
            self.fake_mode.on_item = self.mode.learn_item
            self.mode.fake_mode = self.fake_mode

    def stand_in(self, path: str, value):
        """What the program gets for an argument."""
        if isinstance(value, taeda.Tensor) and self.fake_mode is not None:
            from taeda._subclasses.fake_tensor import is_fake

            if is_fake(value):
                return value
            return self.fake_mode.from_tensor(value, source=path)
        if type(value) is int and self.env is not None:
            return self.env.create_size(value, path)
        return value

    def graph_of(self, args) -> GraphModule:
        """The graph of the function for these arguments."""
        tracer = self.tracer
        leaves, spec = pytree.tree_flatten(args)
        values = [self.stand_in(f"L{i}", leaf) for i, leaf in enumerate(leaves)]
        shown = _with_names(self.f, len(args))
        given = tuple(pytree.tree_map(lambda _: PH, arg) for arg in args)
        given = dict(zip(inspect.signature(shown).parameters, given, strict=False))
        flat, proxies = tracer.create_args_for_root(shown, False, given)
        proxies = [p for p in pytree.tree_leaves(proxies) if isinstance(p, Proxy)]
        for value, proxy in zip(values, proxies, strict=True):
            tracer.track(value, proxy)
        structured = len(proxies) != len(args) or flat is not shown
        inputs = values if structured else pytree.tree_unflatten(values, spec)
        with contextlib.ExitStack() as modes:
            if self.fake_mode is not None:
                modes.enter_context(self.fake_mode)
            modes.enter_context(self.mode)
            result = flat(*inputs)
            self.mode.at_end()
        output = tracer.create_arg(result)
        hints = {} if structured else inspect.get_annotations(inspect.unwrap(self.f))
        kind = hints.get("return")
        tracer.create_node("output", "output", (output,), {}, type_expr=kind)
        module = GraphModule(tracer.root, tracer.graph, _name_of(self.f))
        # What autograd saved and nobody asked for; all else stays as it was done.
        module.graph.eliminate_dead_code(
            lambda node: node.target is not taeda.ops.aten.detach.default
        )
        module.recompile()
        module.shape_env = self.env
        return module


def _name_of(f) -> str:
    return getattr(f, "__name__", None) or type(f).__name__


def make_fx(
    f,
    decomposition_table: dict | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
):
    """A function that runs `f` once and gives the graph of the operators it called.

    Control flow of the program disappears: what it did for these arguments is recorded.
    Derivatives that it takes are operators like others. Tensors that are no arguments
    become attributes of the module.

    Args:
        f: a function of tensors and structures of them.
        decomposition_table: operator -> a function that computes it by others.
        tracing_mode: "real" computes; "fake" computes shapes alone; "symbolic" too, and
            sizes are symbols, so that the graph fits other sizes.
        _allow_non_fake_inputs: the two latter accept real tensors beside arguments.
        pre_dispatch: calls are recorded as the program makes them, above autograd:
            composite operators stay whole.

    Returns:
        A function of the arguments that gives a GraphModule.

    Raises:
        RuntimeError: the program asks for the value of a tensor (in the mode "symbolic"
            it gets a symbol, and an error where a branch depends on it).

    Example:
        >>> gm = make_fx(lambda x: x.sin() + 1)(taeda.ones(2))
        >>> print(gm.code.strip())
        def forward(self, x_1):
            sin = taeda.ops.aten.sin.default(x_1);  x_1 = None
            add = taeda.ops.aten.add.Tensor(sin, 1);  sin = None
            return add
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f"tracing_mode must be one of real, fake, symbolic, got {tracing_mode!r}"
        )

    def traced(*args) -> GraphModule:
        options = (tracing_mode, _allow_non_fake_inputs, pre_dispatch)
        run = _Run(f, decomposition_table, *options)
        return run.graph_of(args)

    return traced


def get_isolated_graphmodule(
    func, args, kwargs=None, tracing_mode: str = "real", decomposition_table=None
) -> GraphModule:
    """The graph of a call; a trace that is under way does not see it."""
    leaves, spec = pytree.tree_flatten((args, kwargs or {}))

    def call(*leaves):
        args, kwargs = pytree.tree_unflatten(list(leaves), spec)
        return func(*args, **kwargs)

    with disable_proxy_modes_tracing():
        return make_fx(call, decomposition_table, tracing_mode)(*leaves)


class DecompositionInterpreter(Interpreter):
    """Runs a graph so that its operators are recorded in a new one.

    Args:
        module: the GraphModule.
        new_graph: gets the nodes.
        decomposition_table: operator -> a function that computes it by others.
    """

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs) -> None:
        super().__init__(module, **kwargs)
        self.new_graph, self.tracer = new_graph, PythonKeyTracer()
        self.tracer.graph, self.tracer.root = new_graph, module
        self.mode = ProxyTorchDispatchMode(self.tracer, "real", decomposition_table)

    def placeholder(self, target, args, kwargs):
        """The argument; the new graph gets the same input."""
        value = super().placeholder(target, args, kwargs)
        proxy = Proxy(self.new_graph.placeholder(target), self.tracer)
        self.tracer.track(value, proxy)
        return value

    def get_attr(self, target, args, kwargs):
        """The attribute; the new graph reads it too."""
        value = super().get_attr(target, args, kwargs)
        self.tracer.track(value, Proxy(self.new_graph.get_attr(target), self.tracer))
        return value

    def output(self, target, args, kwargs):
        """The result; the new graph ends with it."""
        self.new_graph.output(self.tracer.create_arg(args[0]))
        return super().output(target, args, kwargs)

    def run(self, *args, **kwargs):
        """Runs the graph under the recording mode."""
        with self.mode:
            return super().run(*args, **kwargs)
