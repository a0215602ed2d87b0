"""A function as one graph that takes and returns what the function does."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda import fx, nn
from taeda.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from taeda.utils import _pytree as pytree

from ._entry import call_of

__all__ = ["ExportResult", "export"]


class ExportResult(NamedTuple):
    """What `taeda._dynamo.export` gives: the graph, and what it counts on in words."""

    graph_module: fx.GraphModule
    guards: list[str]


def export(
    f: Callable[..., Any],
    *extra_args: Any,
    aten_graph: bool = False,
    pre_dispatch: bool = False,
    decomposition_table: dict | None = None,
    tracing_mode: str = "symbolic",
    dynamic_shapes: object = None,
    assume_static_by_default: bool = False,
    same_signature: bool = True,
    **extra_kwargs: Any,
) -> Callable[..., ExportResult] | ExportResult:
    """One graph of a function or module; `taeda.export.export` keeps more of it.

    Args:
        f: what is called.
        extra_args, extra_kwargs: deprecated: arguments to call it with at once.
        aten_graph: whether calls are those of operators, as `make_fx` records them.
        pre_dispatch, decomposition_table, tracing_mode: arguments of `make_fx`.
        dynamic_shapes: NotImplementedError where given.
        assume_static_by_default: whether sizes are numbers.
        same_signature: False: the graph as a backend gets it.

    Returns:
        A function of the arguments that gives an `ExportResult`.

    Raises:
        Unsupported: when called, of what one graph cannot hold.

    Example:
        >>> made = taeda._dynamo.export(lambda x: {"twice": x * 2})(taeda.ones(2))
        >>> made.graph_module(taeda.zeros(3))
        {'twice': tensor([0., 0., 0.])}
    """
    if dynamic_shapes is not None:
        raise NotImplementedError("_dynamo.export: dynamic_shapes is not implemented")

    def inner(*args: Any, **kwargs: Any) -> ExportResult:
        whole = _Whole(f, args, kwargs, not assume_static_by_default)
        module = whole.module() if same_signature else whole.captured
        if aten_graph and module is not None:
            table = decomposition_table
            module = whole.by_operators(module, tracing_mode, pre_dispatch, table)
        return ExportResult(module, whole.guards)

    if not extra_args and not extra_kwargs:
        return inner
    text = "export(f, *args, **kwargs) is deprecated, use export(f)(*args, **kwargs)"
    warnings.warn(text, FutureWarning, stacklevel=2)
    return inner(*extra_args, **extra_kwargs)


class _Whole:
    """One call of a function, captured."""

    def __init__(self, f, args: tuple, kwargs: dict, dynamic: bool) -> None:
        self.f, self.captured, self.given, self.made = f, None, (), ()
        self.leaves, self.in_spec = pytree.tree_flatten((args, kwargs))
        self.names = _names(f, args, kwargs)
        # Of a module what its compiled form calls, which is asked for the guards.
        compiled = call_of(f, backend=self._take, fullgraph=True, dynamic=dynamic)
        self.result = compiled(*args, **kwargs)
        self.guards = compiled.explain()["guards"]

    def _take(self, gm, inputs):
        self.captured = gm

        def run(*given):
            self.given, self.made = given, gm.forward(*given)
            return self.made

        return run

    def module(self) -> fx.GraphModule:
        """The graph over the leaves of the arguments, with the function's signature."""
        self.graph, self.nodes = fx.Graph(), {}
        self.root = self.f if isinstance(self.f, nn.Module) else nn.Module()
        self.owners = {id(t): name for name, t in _state(self.root)}
        self.constants: dict[str, taeda.Tensor | nn.Module] = {}
        for i, leaf in enumerate(self.leaves):
            node = self.graph.placeholder(f"arg{i}")
            node.meta["val"] = leaf
            self.nodes.setdefault(id(leaf), node)
        found = self._copied()
        leaves, out_spec = pytree.tree_flatten(self.result)
        self.graph.output([self._result(leaf, found) for leaf in leaves])
        info = _PyTreeInfo(self.names, self.in_spec, out_spec)
        self.graph.set_codegen(_PyTreeCodeGen(info))
        attributes = {**dict(_state(self.root)), **self.constants}
        made = fx.GraphModule(attributes, self.graph)
        made.train(getattr(self.f, "training", False))
        return made

    def _copied(self) -> dict:
        """Copies the calls; nodes of what the graph gave, by the objects' identity."""
        if self.captured is None:
            return {}
        env: dict = {}
        inputs = [n for n in self.captured.graph.nodes if n.op == "placeholder"]
        for node, value in zip(inputs, self.given, strict=True):
            is_tensor = isinstance(value, taeda.Tensor)
            env[node] = self._tensor(value) if is_tensor else self._number(node, value)
        for node in self.captured.graph.nodes:
            if node.op == "output":
                break
            if node not in env:
                env[node] = self.graph.node_copy(node, env.__getitem__)
            if node.op == "get_attr":  # the graph of a branch
                self.constants[node.target] = getattr(self.captured, node.target)
        outputs = fx.node.map_arg(node.args[0], env.__getitem__)
        return {id(v): n for v, n in zip(self.made, outputs, strict=True)}

    def _tensor(self, value):
        """The node of an input of the captured graph."""
        if id(value) in self.nodes:
            return self.nodes[id(value)]
        name = self.owners.get(id(value))
        if name is None:
            name = f"_tensor_constant{len(self.constants)}"
            self.constants[name] = value
        node = self.nodes[id(value)] = self.graph.get_attr(name)
        return node

    def _number(self, node, value):
        """A size of an argument, else the number itself.

        Sizes that are equal have one symbol.
        """
        if isinstance(node.meta.get("val"), taeda.SymInt):
            for leaf in self.leaves:
                shape = leaf.shape if isinstance(leaf, taeda.Tensor) else ()
                if value in shape:
                    given = (self.nodes[id(leaf)], list(shape).index(value))
                    return self.graph.call_method("size", given)
        return value

    def _result(self, leaf, found: dict):
        if id(leaf) in found:
            return found[id(leaf)]
        return self._tensor(leaf) if isinstance(leaf, taeda.Tensor) else leaf

    def by_operators(self, module, tracing_mode, pre_dispatch, table):
        """The same graph as `make_fx` records it."""
        from taeda.fx.experimental.proxy_tensor import make_fx

        def flat(*leaves):
            run = fx.Interpreter(module)
            return run.run(*leaves, enable_io_processing=False)

        given = self.leaves if module is not self.captured else list(self.given)
        trace = make_fx(flat, table, tracing_mode, True, pre_dispatch=pre_dispatch)
        made = trace(*given)
        if module is not self.captured:
            made.graph.set_codegen(module.graph._codegen)
            made.recompile()
        return made


def _state(module):
    yield from module.named_parameters()
    yield from module.named_buffers()


def _names(f, args: tuple, kwargs: dict) -> list[str]:
    """Names of the arguments that were given, in their order."""
    target = f.forward if isinstance(f, nn.Module) else f
    names = []
    for p in inspect.signature(target).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
        elif len(names) < len(args):
            names.append(p.name)
    return [*names[: len(args)], *kwargs]
