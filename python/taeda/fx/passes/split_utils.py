"""A graph cut into submodules by the tags of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node, map_arg
from taeda.fx.proxy import Proxy
from taeda.utils._pytree import tree_leaves

from .utils.common import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """The attribute at a path with dots; children of lists by number, None if absent.

    Example:
        >>> getattr_recursive(taeda.nn.Sequential(taeda.nn.ReLU()), "0.inplace")
        False
    """
    for part in name.split("."):
        obj = (
            obj[int(part)] if isinstance(obj, list) else getattr(obj, part, None)  # type: ignore[assignment]
        )
        if obj is None:
            return None
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Set the attribute at a path with dots.

    Example:
        >>> layers = taeda.nn.Sequential(taeda.nn.ReLU())
        >>> setattr_recursive(layers, "0.inplace", True)
    """
    owner, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, owner) if owner else obj, name, value)


@dataclass
class Component:
    """One of the submodules while it is cut out.

    Attributes:
        graph: its nodes; `order` and `name` are those of its tag.
        input_placeholders: of the values in `orig_inputs`, one for each.
        orig_inputs, orig_outputs: nodes of the whole graph that go in and out.
        getattr_maps: from `get_attr` nodes of the whole graph to those in `graph`.
        constructor_args: unused names of arguments.
        gm: the module, at the end.

    Example:
        >>> part = Component(taeda.fx.Graph(), 0, "first")
        >>> x = part.graph.placeholder("x")
        >>> part.gives(x)
        >>> part.orig_outputs
        [x]
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def gives(self, node: Node) -> None:
        """Make a node of the whole graph one of the results."""
        if node not in self.orig_outputs:
            self.orig_outputs.append(node)


class _Split:
    """The cut of one graph."""

    def __init__(self, gm: GraphModule, tags: list[str]) -> None:
        self.gm = gm
        self.parts = [Component(Graph(), i, tag) for i, tag in enumerate(tags)]
        self.by_tag = {part.name: part for part in self.parts}
        self.part_of: dict[Node, Component] = {}
        self.copies: dict[Node, Node] = {}
        # What values of the whole graph are in the graph that calls the parts.
        self.main, self.values = Graph(), {}

    def sort(self) -> Node:
        """Every node into its part; the output node."""
        for node in self.gm.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = self.main.node_copy(node, lambda n: n)
            elif node.op == "output":
                return node
            elif node.op != "get_attr":
                self.put(node)
        raise RuntimeError("Graph had no output node!")

    def put(self, node: Node) -> None:
        part = self.by_tag[node.tag]
        before = [self.part_of[n] for n in node.all_input_nodes if n in self.part_of]
        last = max((p.order for p in before), default=0)
        assert part.order >= last, (
            f"Component {part.name} order must be >= max of its upstream components, "
            f"order={part.order} and max={last}"
        )
        copy = part.graph.node_copy(node, lambda n: self.value_in(part, n))
        copy.tag = node.tag
        self.part_of[node], self.copies[node] = part, copy

    def value_in(self, part: Component, node: Node) -> Node:
        if node.op == "get_attr":
            if node not in part.getattr_maps:
                made = part.graph.get_attr(node.target, type_expr=node.type)
                part.getattr_maps[node] = made
            return part.getattr_maps[node]
        source = self.part_of.get(node)
        if source is part:
            return self.copies[node]
        if node not in part.orig_inputs:
            made = part.graph.placeholder(node.name, type_expr=node.type)
            made.meta = dict(node.meta)
            part.orig_inputs.append(node)
            part.input_placeholders.append(made)
            if source is not None:
                source.gives(node)
        return part.input_placeholders[part.orig_inputs.index(node)]

    def returned(self, output: Node) -> None:
        """The values that the whole graph returns."""
        for node in tree_leaves(output.args[0]):
            if not isinstance(node, Node):
                continue
            if node.op == "get_attr":
                self.values[node] = self.main.get_attr(node.target)
            elif node in self.part_of:
                self.part_of[node].gives(node)

    def call(self, part: Component, return_tuple: bool) -> dict[str, str]:
        """The part as a module, called; its paths of state by the old ones."""
        results = [self.copies[node] for node in part.orig_outputs]
        alone = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if alone else tuple(results))
        part.gm, paths = lift_subgraph_as_module(self.gm, part.graph, part.name)
        arguments = tuple(self.values[node] for node in part.orig_inputs)
        called = self.main.call_module(part.name, arguments)
        for i, node in enumerate(part.orig_outputs):
            self.values[node] = called if alone else Proxy(called)[i].node
        return {old: f"{part.name}.{new}" for new, old in paths.items()}


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
):
    """A module whose submodules hold the nodes of one tag each, called in turn.

    Args:
        gm: every node of a call has a `tag`, one of `tags`; those of placeholders,
            attributes and the output are ignored.
        tags: the names of the submodules, in the order of their calls.
        return_fqn_mapping: give the new paths of state and modules by the old ones too.
        return_tuple: a submodule with a single result returns a tuple of it.
        GraphModuleCls: the class of the result.

    Returns:
        The module, or it and a dict of paths.

    Raises:
        AssertionError: a node needs a value of a later tag.
        KeyError: a node's tag is not among `tags`.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x.sin().cos())
        >>> for node in gm.graph.nodes:
        ...     node.tag = "late" if node.name == "cos" else "early"
        >>> [name for name, _ in split_by_tags(gm, ["early", "late"]).named_children()]
        ['early', 'late']
    """
    split = _Split(gm, tags)
    output = split.sort()
    split.returned(output)
    paths: dict[str, str] = {}
    for part in split.parts:
        paths.update(split.call(part, return_tuple))
    split.main.output(map_arg(output.args[0], split.values.__getitem__))
    split.main._codegen = gm.graph._codegen
    root = HolderModule({part.name: part.gm for part in split.parts})
    made = GraphModuleCls(root, split.main)
    return (made, paths) if return_fqn_mapping else made
