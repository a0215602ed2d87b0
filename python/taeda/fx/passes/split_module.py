"""Cuts a graph into submodules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taeda import nn
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _get_attr
from taeda.fx.node import Node, map_arg
from taeda.fx.proxy import Proxy

__all__ = ["Partition", "split_module"]


@dataclass
class Partition:
    """A part: its graph, and what it takes from and gives to others.

    Attributes:
        inputs, outputs: the nodes of the whole graph, in order of their first use.
        before, after: the parts whose values it uses, and that use its.
        environment: node of the whole graph -> node here.
        targets: paths that the graph here names -> what stands there.
    """

    name: str
    submod_name: str
    graph: Graph = field(default_factory=Graph)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)
    after: dict[str, None] = field(default_factory=dict)
    environment: dict[Node, Node] = field(default_factory=dict)
    targets: dict[str, Any] = field(default_factory=dict)


class _Cut:
    """One split; see `split_module`."""

    def __init__(self, m, options) -> None:
        self.m, self.options = m, options
        self.parts: dict[str, Partition] = {}
        self.home: dict[Node, Partition] = {}  # of a node: its part
        self.graph, self.attributes = Graph(), {}
        self.outer: dict[Node, Node] = {}  # node of the whole graph -> of the new one

    def assign(self, choose) -> None:
        """Gives each call a part, and notes what crosses between parts."""
        affix = self.options["partition_affix"]
        prefix = "submod_" if affix is None else f"submod_{affix}_"
        for node in self.m.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                name = str(choose(node))
                if name not in self.parts:
                    self.parts[name] = Partition(name, prefix + name)
                self.home[node] = self.parts[name]
        for node in self.m.graph.nodes:
            for used in node.all_input_nodes:
                self._cross(self.home.get(used), self.home.get(node), used, node)

    def _cross(self, source, user, used: Node, node: Node) -> None:
        if source is user:
            return
        if source is not None:
            source.outputs[used] = None
        if user is not None:
            user.inputs[used] = None
        if source is not None and user is not None:
            source.after[user.name] = None
            user.before.add(source.name)

    def order(self) -> list[Partition]:
        """The parts, those that are used first.

        Raises:
            RuntimeError: parts need each other.
        """
        ready = [p.name for p in self.parts.values() if not p.before]
        done: list[Partition] = []
        waiting = {name: set(p.before) for name, p in self.parts.items()}
        while ready:
            part = self.parts[ready.pop()]
            done.append(part)
            for name in part.after:
                waiting[name].discard(part.name)
                if not waiting[name]:
                    ready.append(name)
        if len(done) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return (
            list(self.parts.values()) if self.options["keep_original_order"] else done
        )

    def is_module(self, node: Node) -> bool:
        """Whether a node names a submodule, which a part has for itself."""
        return node.op == "get_attr" and isinstance(
            _get_attr(self.m, node.target), nn.Module
        )

    def add_inputs(self, part: Partition) -> None:
        """Makes the placeholders of a part."""
        modules = [n for n in part.inputs if self.is_module(n)]
        values = [n for n in part.inputs if not self.is_module(n)]
        part.inputs = dict.fromkeys(values)
        for i, node in enumerate(values + modules):
            if i >= len(values):
                part.targets[node.target] = _get_attr(self.m, node.target)
                here = part.graph.get_attr(node.target)
            else:
                name = node.name if self.options["keep_original_input_name"] else None
                here = part.graph.placeholder(name or f"arg_{i}", type_expr=node.type)
            here.meta = node.meta.copy()
            part.environment[node] = here

    def copy_calls(self, qualname_map) -> None:
        """Copies each call to its part."""
        for node, part in self.home.items():
            target, inside = node.target, part.environment.__getitem__
            if node.op == "call_module":
                target = node.target.replace(".", "_")
                part.targets[target] = _get_attr(self.m, node.target)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = node.target
            made = part.graph.create_node(
                node.op,
                target,
                map_arg(node.args, inside),
                map_arg(node.kwargs, inside),
                node.name if self.options["keep_original_node_name"] else None,
                node.type,
            )
            made.meta = node.meta.copy()
            part.environment[node] = made

    def add_outer(self, node: Node) -> None:
        """Copies an input or attribute to the new graph."""
        if node in self.outer:
            return
        if node.op == "get_attr":
            self.attributes[node.target] = _get_attr(self.m, node.target)
        made = self.graph.node_copy(node)
        self.outer[node] = made

    def call(self, part: Partition) -> None:
        """Ends a part's graph and calls it in the new one."""
        results = tuple(part.environment[node] for node in part.outputs)
        alone = len(results) == 1 and not self.options["tuple_return"]
        part.graph.output(results[0] if alone else results)
        for node in part.inputs:
            if node not in self.home:
                self.add_outer(node)
        self.attributes[part.submod_name] = GraphModule(part.targets, part.graph)
        given = tuple(self.outer[node] for node in part.inputs)
        call = self.graph.call_module(part.submod_name, given)
        for i, node in enumerate(part.outputs):
            self.outer[node] = call if alone else Proxy(call)[i].node


def split_module(
    m: GraphModule,
    root_m,
    split_callback,
    qualname_map: dict | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that calls submodules `submod_0`, `submod_1`... for parts of a graph.

    Args:
        m: the GraphModule.
        root_m: not used; state is taken from `m`.
        split_callback: gives for a node the number (or name) of its part.
        qualname_map: gets the paths of modules in the result -> in `m`.
        keep_original_order: call the parts in the order of their first nodes.
        keep_original_node_name: nodes keep their names inside the parts.
        keep_original_input_name: inputs of parts are named for values, else arg_0...
        partition_affix: the parts are named `submod_AFFIX_0`...
        tuple_return: a part returns a tuple even of one value.

    Raises:
        RuntimeError: parts need each other.
    """
    cut = _Cut(
        m,
        {
            "keep_original_order": keep_original_order,
            "keep_original_node_name": keep_original_node_name,
            "keep_original_input_name": keep_original_input_name,
            "partition_affix": partition_affix,
            "tuple_return": tuple_return,
        },
    )
    cut.assign(split_callback)
    order = cut.order()
    for part in order:
        cut.add_inputs(part)
    cut.copy_calls(qualname_map)
    for node in m.graph.nodes:
        if node.op == "placeholder" or (
            node.op == "get_attr"
            and not keep_original_order
            and not cut.is_module(node)
        ):
            cut.add_outer(node)
    for part in order:
        cut.call(part)
    for node in m.graph.find_nodes(op="output"):
        for used in node.all_input_nodes:
            if used.op == "get_attr":
                cut.add_outer(used)
        cut.graph.output(map_arg(node.args[0], cut.outer.__getitem__))
    made = GraphModule(cut.attributes, cut.graph)
    made.meta["partition_names"] = {p.submod_name for p in order}
    return made
