"""`Interpreter` runs a graph node by node; `Transformer` makes a changed one."""

from __future__ import annotations

from taeda import nn

from . import traceback as fx_traceback
from ._codegen import last_uses
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph; subclasses change what a node does.

    `run_node` calls the method that has the name of the node's kind: `placeholder`,
    `get_attr`, `call_function`, `call_method`, `call_module`, `output`.

    Args:
        module: the GraphModule, or the module that has what the graph names.
        garbage_collect_values: forget a value after its last use.
        graph: the graph; by default the module's.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x + 1)
        >>> taeda.fx.Interpreter(gm).run(taeda.ones(2))
        tensor([2., 2.])
    """

    def __init__(
        self, module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env: dict[Node, object] = {}
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = last_uses(self.graph.nodes)

    def run(self, *args, initial_env=None, enable_io_processing: bool = True):
        """The result for these arguments.

        Args:
            args: the values of the placeholders, in order.
            initial_env: values of nodes that are known and not computed.
            enable_io_processing: call the graph's `process_inputs` and
                `process_outputs`, as the generated function does.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                self._explain(error, node)
                raise
            if self.garbage_collect_values:
                for done in self.user_to_last_uses.get(node, ()):
                    self.env.pop(done, None)
            if node.op == "output":
                result = self.env[node]
                process = self.graph.process_outputs
                return process(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list):
        """The same with the arguments in a list, which is emptied first."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def _explain(self, error: Exception, node: Node) -> None:
        """Adds to an error's text which node was at work and where it comes from."""
        if not self.extra_traceback or hasattr(error, "_fx_node"):
            return
        error._fx_node = node
        told = [str(error.args[0])] if error.args else []
        told.append(f"While executing {node.format_node()}")
        text = "\n\n".join(told) + f"\nOriginal traceback:\n{node.stack_trace}"
        if isinstance(error, KeyError):  # which shows its argument's repr
            raise RuntimeError(text) from error
        error.args = (text, *error.args[1:])

    def run_node(self, n: Node):
        """The value of one node."""
        with fx_traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # The kinds of nodes ------------------------------------------------------------

    def placeholder(self, target: str, args, kwargs):
        """The next argument; for `*name` all that are left.

        Raises:
            RuntimeError: there is none, and no default.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        missing = object()
        value = next(self.args_iter, args[0] if args else missing)
        if value is missing:
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not "
                "passed in!"
            )
        return value

    def get_attr(self, target: str, args, kwargs):
        """What the module has at this path."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """The function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args, kwargs):
        """The result of a method of the first argument."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: str, args, kwargs):
        """The submodule's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args, kwargs):
        """The graph's result."""
        return args[0]

    # Values ------------------------------------------------------------------------

    def fetch_attr(self, target: str):
        """What the module has at a path.

        Raises:
            RuntimeError: there is nothing.
        """
        found = self.module
        passed: list[str] = []
        for name in target.split("."):
            passed.append(name)
            if not hasattr(found, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(passed)}"
                )
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node):
        """A node's arguments with values in place of nodes."""
        args, kwargs = self.map_nodes_to_values((n.args, n.kwargs), n)
        return args, kwargs

    def map_nodes_to_values(self, args, n: Node):
        """A structure with values in place of nodes.

        Raises:
            RuntimeError: a node has no value yet.
        """

        def value(used: Node):
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() "
                    "to diagnose such issues"
                )
            return self.env[used]

        return map_arg(args, value)


class _Copying(Tracer):
    """Adds to the graph of a transformer; every module is one call."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph, self.root, self.tensor_attrs = graph, nn.Module(), {}

    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph on proxies, so that what its methods do becomes a new graph.

    Args:
        module: the GraphModule.

    Example:
        >>> class Cosine(taeda.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         target = taeda.cos if target is taeda.sin else target
        ...         return super().call_function(target, args, kwargs)
        >>> gm = taeda.fx.symbolic_trace(lambda x: taeda.sin(x))
        >>> print(Cosine(gm).transform().code.strip())
        def forward(self, x):
            cos = taeda.cos(x);  x = None
            return cos
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Copying(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args, kwargs) -> Proxy:
        """The same input in the new graph."""
        default = args[0] if args else ...
        return Proxy(
            self.new_graph.placeholder(target, default_value=default), self.tracer
        )

    def get_attr(self, target: str, args, kwargs) -> Proxy:
        """The same attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        """The same call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target: str, args, kwargs):
        """The same call, or what is inside of a module that is no leaf."""
        return self.tracer.call_module(
            self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs
        )

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = self.run(enable_io_processing=False)
        if result is not None:
            new = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            old = self.graph.output_node()
            made = self.new_graph.output(new, old.type)
            made.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)
