"""An exported program with the submodules that its module had.

The nodes of a graph note in which module's forward they were made. Nodes that follow
each other in one call of a submodule become the graph of that submodule: what they use
from outside are its inputs, what is used of them outside its outputs.
"""

from __future__ import annotations

import abc
import operator

import taeda
from taeda import nn
from taeda.fx._pytree import tree_flatten_spec
from taeda.fx.graph import Graph
from taeda.fx.graph_module import _assign_attr
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node, map_arg
from taeda.utils import _pytree as pytree

from ._unlift import flat_arguments, in_order
from .exported_program import ExportedProgram
from .graph_signature import ConstantArgument, InputKind, OutputKind

__all__ = [
    "FlatArgsAdapter",
    "InterpreterModule",
    "InterpreterModuleDispatcher",
    "UnflattenedModule",
    "unflatten",
]

_WRITES = {
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
}


class FlatArgsAdapter(abc.ABC):
    """Turns arguments of another structure into the leaves that a program takes."""

    @abc.abstractmethod
    def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
        """The leaves for `target_spec` of `input_args`, the leaves by `input_spec`."""

    def get_flat_arg_paths(self) -> list[str]:
        """Paths of the leaves that the adapter uses."""
        return []


def _print_readable(
    self,
    print_output: bool = True,
    include_stride: bool = False,
    include_device: bool = False,
    colored: bool = False,
) -> str:
    """The code of the part's graph; printed too, if `print_output` is true."""
    text = self.graph.python_code(
        "self",
        verbose=True,
        include_stride=include_stride,
        include_device=include_device,
        colored=colored,
    ).src
    if print_output:
        print(text)
    return text


class InterpreterModule(nn.Module):
    """A submodule that runs its part of the graph node by node.

    Args:
        graph: the part.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.arg_names = [n.target for n in graph.nodes if n.op == "placeholder"]

    def forward(self, *args, **kwargs):
        """Runs the part; keyword arguments go by the names of its inputs."""
        rest = self.arg_names[len(args) :]
        values = [*args, *(kwargs[name] for name in rest)]
        runner = Interpreter(self, graph=self.graph)
        return runner.run(*values, enable_io_processing=False)

    print_readable = _print_readable


class InterpreterModuleDispatcher(nn.Module):
    """A submodule that is called several times, each time with a graph of its own.

    Args:
        calls: the parts, in the order of the calls.

    Example:
        >>> from taeda.export.unflatten import InterpreterModuleDispatcher
        >>> turns = InterpreterModuleDispatcher([taeda.nn.ReLU(), taeda.nn.Tanh()])
        >>> turns(taeda.tensor(-1.0)), turns(taeda.tensor(0.0))
        (tensor(0.), tensor(0.))
    """

    def __init__(self, calls: list) -> None:
        super().__init__()
        # No submodules of this one: they hold the same tensors that it does.
        self.__dict__["_calls"], self._turn = calls, 0

    def forward(self, *args, **kwargs):
        """Runs the part of this turn."""
        part = self.__dict__["_calls"][self._turn]
        self._turn = (self._turn + 1) % len(self.__dict__["_calls"])
        return part(*args, **kwargs)


def _stack_of(node) -> tuple:
    """((key, path), ...) of the calls that a node was made in, without the root's."""
    entries = node.meta.get("nn_module_stack", {}).items()
    return tuple((key, path) for key, (path, _) in entries if path)


class _Part:
    """One call of a module: its nodes, and its graph while it is made."""

    def __init__(self, owner, path: str, depth: int, state: dict) -> None:
        self.owner, self.path, self.depth, self.state = owner, path, depth, state
        self.graph, self.made = Graph(), {}
        self.read: dict[str, Node] = {}
        self.specs: dict[str, object] = {}  # attributes that the graph reads

    def spec(self, spec) -> Node:
        """The node of a structure, which the module has as an attribute."""
        name = f"_spec_{len(self.specs)}"
        self.specs[name] = spec
        return self.graph.create_node("get_attr", name, (), {})

    def has(self, target: str) -> bool:
        """Whether a path of the state lies in this module."""
        return not self.path or target.startswith(f"{self.path}.")

    def value(self, node: Node) -> Node:
        """The node of this graph for one of the program's."""
        if node in self.made:
            return self.made[node]
        target = self.state[node]
        if target not in self.read:
            name = target[len(self.path) + 1 :] if self.path else target
            self.owner.assign(target)
            self.read[target] = self.graph.create_node(
                "get_attr", name, (), {}, name.replace(".", "_")
            )
            self.read[target].meta = dict(node.meta)
        return self.read[target]

    def outside(self, nodes: list) -> list:
        """What the nodes use that is neither made by them nor state of the module."""
        own, found = set(nodes), {}
        for node in nodes:
            for used in node.all_input_nodes:
                is_state = used in self.state and self.has(self.state[used])
                if used not in own and not is_state:
                    found[used] = None
        return list(found)

    def fill(self, nodes: list) -> None:
        """Copies the nodes; those of deeper calls become calls of submodules."""
        at = 0
        while at < len(nodes):
            stack = _stack_of(nodes[at])
            # A module that lies elsewhere is no part of this one: its nodes are.
            if len(stack) <= self.depth or not self.has(stack[self.depth][1]):
                node = nodes[at]
                self.made[node] = self.graph.node_copy(node, self.value)
                at += 1
                continue
            end, key = at, stack[self.depth]
            while end < len(nodes) and _is_within(nodes[end], self.depth, key):
                end += 1
            self.call(key, nodes[at:end])
            at = end

    def call(self, key, nodes: list) -> None:
        """A call of a submodule."""
        name, path = self.owner.place(key)
        part = _Part(self.owner, path, self.depth + 1, self.state)
        inputs = part.outside(nodes)
        inside = set(nodes)
        outputs = [n for n in nodes if any(u not in inside for u in n.users)]
        signature = self.owner.signature_of(name, part, inputs, nodes, outputs)
        if signature is not None:
            self.call_as_written(part, signature, nodes)
            return
        for node in inputs:
            part.made[node] = part.graph.placeholder(node.name)
            part.made[node].meta = dict(node.meta)
        part.fill(nodes)
        results = [part.made[n] for n in outputs]
        part.graph.output(results[0] if len(results) == 1 else tuple(results))
        self.owner.install(name, part)
        local = name[len(self.path) + 1 :] if self.path else name
        call = self.graph.call_module(local, tuple(map(self.value, inputs)))
        if len(outputs) == 1:
            call.meta = dict(outputs[0].meta)
            self.made[outputs[0]] = call
            return
        for i, node in enumerate(outputs):
            self.made[node] = self.graph.call_function(operator.getitem, (call, i))


    def call_as_written(self, part, signature, nodes: list) -> None:
        """A call of a submodule with the arguments that the program gave it."""
        owner, graph = self.owner, self.graph
        leaves = [
            arg.value
            if isinstance(arg, ConstantArgument)
            else self.value(owner.by_name[arg.name])
            for arg in signature.inputs
        ]
        packed = (leaves, self.spec(signature.in_spec))
        packed = graph.call_function(pytree.tree_unflatten, packed)
        args, keys = part.take_arguments(signature, owner.by_name)
        positional = graph.call_function(operator.getitem, (packed, 0))
        named = graph.call_function(operator.getitem, (packed, 1))
        args = [
            graph.call_function(operator.getitem, (positional, i))
            for i in range(len(args))
        ]
        kwargs = {k: graph.call_function(operator.getitem, (named, k)) for k in keys}
        part.fill(nodes)
        outputs = [owner.by_name.get(arg.name) for arg in signature.outputs]
        results = tuple(node and part.value(node) for node in outputs)
        results = (results, part.spec(signature.out_spec))
        part.graph.output(part.graph.call_function(pytree.tree_unflatten, results))
        owner.install_call(part)
        local = part.path[len(self.path) + 1 :] if self.path else part.path
        call = graph.call_module(local, tuple(args), kwargs)
        flat = (call, self.spec(signature.out_spec))
        flat = graph.call_function(tree_flatten_spec, flat)
        for i, node in enumerate(outputs):
            if node is not None:
                self.made[node] = graph.call_function(operator.getitem, (flat, i))
                self.made[node].meta = dict(node.meta)

    def take_arguments(self, signature, by_name: dict) -> tuple:
        """Makes what the program gave the call the inputs of this graph."""
        first, second = signature.in_spec.children()
        args = [
            self.graph.placeholder(f"_positional_arg_{i}")
            for i in range(first.num_children)
        ]
        keys = list(second.context or ())
        kwargs = {key: self.graph.placeholder(key) for key in keys}
        given = ((tuple(args), kwargs), self.spec(signature.in_spec))
        flat = self.graph.call_function(tree_flatten_spec, given)
        for i, arg in enumerate(signature.inputs):
            if not isinstance(arg, ConstantArgument):
                node = by_name[arg.name]
                made = (operator.getitem, (flat, i), {}, node.name)
                self.made[node] = self.graph.create_node("call_function", *made)
                self.made[node].meta = dict(node.meta)
        return args, keys


def _is_within(node, depth: int, key) -> bool:
    stack = _stack_of(node)
    return len(stack) > depth and stack[depth] == key


class UnflattenedModule(nn.Module):
    """A program as a module with submodules, which can be exchanged one by one.

    Args:
        export_module: the program.
        flat_args_adapter: takes arguments of other structures.

    Raises:
        RuntimeError: when called, with sizes for which the program was not made.

    Example:
        >>> net = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.ReLU())
        >>> ep = taeda.export.export(net, (taeda.ones(1, 2),))
        >>> sorted(dict(taeda.export.unflatten(ep).named_children()))
        ['0', '1']
    """

    def __init__(self, export_module: ExportedProgram, flat_args_adapter=None) -> None:
        super().__init__()
        if export_module.graph_signature.backward_signature is not None:
            raise ValueError("Unflattening on JointExportModule NYI")
        self._program, self.flat_args_adapter = export_module, flat_args_adapter
        self.module_call_graph = export_module.module_call_graph
        self.graph_signature = export_module.graph_signature
        self.adapted = False
        specs = dict(
            zip(
                (n for n in export_module.graph.nodes if n.op == "placeholder"),
                self.graph_signature.input_specs,
                strict=True,
            )
        )
        self._specs = {s.target: s for s in specs.values() if s.target is not None}
        self._copies: dict = {}  # id -> (state of the program, its copy)
        self.inputs_checked = [
            n for n, s in specs.items() if s.kind is InputKind.USER_INPUT
        ]
        for target in self._specs:
            self.assign(target)
        self._build(specs)

    def _build(self, specs: dict) -> None:
        for name, child in self._program.graph_module.named_children():
            self.add_module(name, child)
        state = {n: s.target for n, s in specs.items() if s.target is not None}
        self.by_name = {n.name: n for n in self._program.graph.nodes}
        self._signatures = {e.fqn: e.signature for e in self.module_call_graph[1:]}
        part = _Part(self, "", 0, state)
        for node in self.inputs_checked:
            part.made[node] = part.graph.placeholder(node.name)
            part.made[node].meta = dict(node.meta)
        nodes = list(self._program.graph.nodes)
        part.fill([n for n in nodes if n.op not in ("placeholder", "output")])
        results = self._program.graph.output_node().args[0]
        part.graph.output(map_arg(results, part.value))
        self.graph = part.graph
        for name, spec in part.specs.items():
            setattr(self, name, spec)

    # What building asks for -------------------------------------------------------

    def assign(self, target: str) -> None:
        """Puts a parameter, buffer or constant at its path."""
        spec = self._specs[target]
        tensor = self._program.tensor_of(spec)
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            tensor = self._copy_of(tensor)
        _assign_attr(tensor, self, target)
        *path, name = target.split(".")
        transient = spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False
        if transient:
            owner = self.get_submodule(".".join(path))
            owner._non_persistent_buffers_set.add(name)

    def _copy_of(self, tensor):
        """A copy, which calls may write to; the same one under each of its names."""
        known = self._copies.get(id(tensor))
        if known is None:
            copy = tensor.detach().clone()
            if isinstance(tensor, nn.Parameter):
                copy = nn.Parameter(copy, tensor.requires_grad)
            self._copies[id(tensor)] = known = (tensor, copy)
        return known[1]

    def place(self, key) -> tuple[str, str]:
        """The name of the submodule for a call, and the path of its state."""
        text, path = key
        _, at, number = text.partition("@")
        return f"{path}{at}{number}", path

    def signature_of(self, name: str, part, inputs, nodes, outputs):
        """The signature of a call, where its arguments and results are all there is.

        Args:
            inputs: what the call reads.
            nodes: what is computed in it.
            outputs: what is read of them outside.
        """
        found = self._signatures.get(name)
        if found is None:
            return None
        given, given_back = (
            [self.by_name.get(a.name) for a in args if hasattr(a, "name")]
            for args in (found.inputs, found.outputs)
        )
        named = {a.name for a in found.inputs if not isinstance(a, ConstantArgument)}
        if named - set(self.by_name) or set(inputs) - set(given):
            return None
        known = {None, *given, *nodes}
        known |= {n for n, target in part.state.items() if part.has(target)}
        whole = set(outputs) <= set(given_back) <= known
        return found if whole else None

    def install_call(self, part) -> None:
        """Puts a part at its path, beside those of the calls before."""
        before = getattr(self, "_called", None)
        if before is None:
            before = self.__dict__["_called"] = {}
        made = self.install(part.path, part)
        calls = before.setdefault(part.path, [])
        calls.append(made)
        if len(calls) > 1:
            several = InterpreterModuleDispatcher(calls)
            _share(made, several)
            *path, last = part.path.split(".")
            self.get_submodule(".".join(path)).add_module(last, several)

    def install(self, name: str, part) -> InterpreterModule:
        """Puts a part at a path, with what was there before."""
        graph = part.graph
        *path, last = name.split(".")
        owner = self
        for step in path:
            if not hasattr(owner, step):
                owner.add_module(step, nn.Module())
            owner = getattr(owner, step)
        made, before = InterpreterModule(graph), getattr(owner, last, None)
        if before is None and "@" in last:
            before = getattr(owner, last.partition("@")[0], None)
        if before is not None:
            _share(before, made)
        for attribute, spec in part.specs.items():
            setattr(made, attribute, spec)
        branches = dict(self._program.graph_module.named_children())
        for node in graph.nodes:
            if node.op == "get_attr" and node.target in branches:
                made.add_module(node.target, branches[node.target])
        owner.add_module(last, made)
        return made

    # Calls ------------------------------------------------------------------------

    def process_forward_inputs(self, *args, **kwargs) -> list:
        """The leaves of the arguments, checked."""
        spec = self.module_call_graph[0].signature.in_spec
        if self.flat_args_adapter is None:
            leaves = flat_arguments(args, in_order(kwargs, spec), spec)
        else:
            leaves, received = pytree.tree_flatten((args, kwargs))
            if received != spec:
                leaves = self.flat_args_adapter.adapt(spec, received, leaves)
        for node, value in zip(self.inputs_checked, leaves, strict=True):
            _check_sizes(node, value)
        return leaves

    def forward(self, *args, **kwargs):
        """Calls the program."""
        leaves = self.process_forward_inputs(*args, **kwargs)
        runner = Interpreter(self, graph=self.graph)
        results = runner.run(*leaves, enable_io_processing=False)
        names = [n.name for n in self.inputs_checked]
        kept = []
        specs = self.graph_signature.output_specs
        with taeda.no_grad():
            for value, spec in zip(results, specs, strict=True):
                if spec.kind not in _WRITES:
                    kept.append(value)
                elif spec.kind is OutputKind.USER_INPUT_MUTATION:
                    leaves[names.index(spec.target)].copy_(value)
                else:
                    _get(self, spec.target).copy_(value)
        out_spec = self.module_call_graph[0].signature.out_spec
        return pytree.tree_unflatten(kept, out_spec)

    def type_name(self) -> str:
        """The class of the module that was exported, by its full name."""
        for node in self._program.graph.nodes:
            for path, kind in node.meta.get("nn_module_stack", {}).values():
                if not path:
                    return kind
        return ""

    print_readable = _print_readable


def _share(module, other) -> None:
    """Gives a module what another one has."""
    for table in ("_parameters", "_buffers", "_modules"):
        getattr(other, table).update(getattr(module, table))
    other._non_persistent_buffers_set |= module._non_persistent_buffers_set


def _get(module, path: str):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _check_sizes(node, value) -> None:
    seen = node.meta.get("val")
    if not isinstance(seen, taeda.Tensor) or not isinstance(value, taeda.Tensor):
        return
    for i, (wanted, size) in enumerate(zip(seen.shape, value.shape, strict=False)):
        if isinstance(wanted, int) and wanted != size:
            raise RuntimeError(
                f"Expected input at {node.name}.shape[{i}] to be equal to {wanted}, but"
                f" got {size}. If you meant for this dimension to be dynamic, please "
                "re-export and specify dynamic_shapes (e.g. with Dim.DYNAMIC)"
            )


def unflatten(module: ExportedProgram, flat_args_adapter=None) -> UnflattenedModule:
    """The program as a module with the submodules that it was exported from.

    Args:
        module: the program.
        flat_args_adapter: takes arguments of other structures.
    """
    return UnflattenedModule(module, flat_args_adapter)
