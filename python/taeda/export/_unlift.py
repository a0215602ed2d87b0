"""An exported program as a module that is called as the original one."""

from __future__ import annotations

import copy

import taeda
from taeda import nn
from taeda.fx._codegen import _PyTreeInfo
from taeda.fx.graph import _PyTreeCodeGen
from taeda.fx.graph_module import GraphModule, _assign_attr
from taeda.utils import _pytree as pytree

from ._guards import GuardsFn
from .graph_signature import InputKind, OutputKind

__all__ = ["ExportedModule", "flat_arguments", "unlifted"]

_WRITES = (
    OutputKind.BUFFER_MUTATION,
    OutputKind.PARAMETER_MUTATION,
    OutputKind.USER_INPUT_MUTATION,
)


class ExportedModule(GraphModule):
    """What `ExportedProgram.module()` gives; its mode is the one it was made in."""

    def train(self, mode: bool = True):
        """Not possible: the graph holds the mode.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self):
        """Not possible: the graph holds the mode.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("Calling eval() is not supported yet.")

    def __call__(self, *args, **kwargs):
        spec = self._in_spec
        kwargs = in_order(kwargs, spec)
        flat_arguments(args, kwargs, spec)
        return super().__call__(*args, **kwargs)


def in_order(kwargs: dict, spec) -> dict:
    """The keyword arguments in the order of a program's structure.

    Raises:
        ValueError: others than those.
    """
    wanted = spec.child(1).context
    if set(kwargs) != set(wanted):
        raise ValueError(
            f"Ran into a kwarg keyword mismatch: Got the following keywords "
            f"{list(kwargs)} but expected {list(wanted)}"
        )
    return {name: kwargs[name] for name in wanted}


def flat_arguments(args: tuple, kwargs: dict, spec) -> list:
    """The leaves of arguments.

    Raises:
        ValueError: they have another structure.
    """
    leaves, received = pytree.tree_flatten((args, kwargs))
    if received == spec:
        return leaves
    try:  # the same keys in another order
        leaves = spec.flatten_up_to((args, kwargs))
        fits = all(map(pytree.tree_is_leaf, leaves))
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            "Trying to flatten user inputs with exported input tree spec: \n"
            f"{spec}\nbut actually got inputs with tree spec of: \n{received}.\n"
            "Please check that the inputs have the same number and type of args and "
            "kwargs as the ones you used when tracing."
        )
    return leaves


def unlifted(program, check_guards: bool) -> ExportedModule:
    """The module of a program; see `ExportedProgram.module`."""
    graph = copy.deepcopy(program.graph)
    signature = program.graph_signature
    root, values = nn.Module(), {}
    holders = [n for n in graph.nodes if n.op == "placeholder"]
    users, given = [], []  # inputs of the caller, and their names in the signature
    for node, spec in zip(holders, signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            users.append(node)
            given.append(spec.arg.name)
            continue
        value = program.tensor_of(spec)
        if spec.kind is InputKind.CONSTANT_TENSOR:  # nothing that trains
            value = value.detach()
        _assign_attr(value, root, spec.target)
        values[node] = spec.target
    for name, child in program.graph_module.named_children():
        root.add_module(name, child)
    whole = program.module_call_graph[0].signature
    last = users[-1] if users else None
    _read_state(graph, values, last)
    if check_guards and users:
        root.add_module("_guards_fn", GuardsFn(given, program._guards))
        first = next(n for n in graph.nodes if n.op not in ("placeholder", "get_attr"))
        with graph.inserting_before(first):
            graph.call_module("_guards_fn", tuple(users))
    _write(graph, signature, dict(zip(given, users, strict=True)))
    names = whole.forward_arg_names or _names(whole.in_spec)
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, whole.in_spec, whole.out_spec)))
    module = ExportedModule(root, graph, "GraphModule")
    for spec in signature.input_specs:
        if spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False:
            path, _, name = spec.target.rpartition(".")
            module.get_submodule(path)._non_persistent_buffers_set.add(name)
    module.shape_env = program.graph_module.shape_env
    return module


def _read_state(graph, paths: dict, last) -> None:
    """Reads the state in the place of inputs, after those of the caller."""
    first = next(n for n in graph.nodes if n not in paths)
    made = []
    for node, path in reversed(paths.items()):
        at = first if last is None else last
        with graph.inserting_before(at) if last is None else graph.inserting_after(at):
            read = graph.create_node("get_attr", path, (), {}, path.replace(".", "_"))
        first = read
        read.meta = dict(node.meta)
        made.append((node, read))
    for node, read in made:
        node.replace_all_uses_with(read)
        graph.erase_node(node)


def _write(graph, signature, nodes: dict) -> None:
    """Copies new values into what they belong to, and leaves them out of the result."""
    output = graph.output_node()
    values = output.args[0]
    kept = []
    readers = {n.target: n for n in graph.nodes if n.op == "get_attr"}
    with graph.inserting_before(output):
        for value, spec in zip(values, signature.output_specs, strict=True):
            if spec.kind not in _WRITES:
                kept.append(value)
                continue
            to_input = spec.kind is OutputKind.USER_INPUT_MUTATION
            written = nodes[spec.target] if to_input else readers[spec.target]
            target = taeda.ops.aten.copy_.default
            graph.create_node(
                "call_function", target, (written, value), {}, "copy__default"
            )
    output.args = (tuple(kept),)


def _names(spec) -> list[str]:
    count = spec.child(0).num_children
    return [f"arg_{i}" for i in range(count)] + list(spec.child(1).context)
