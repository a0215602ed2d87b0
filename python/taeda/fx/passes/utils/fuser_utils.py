"""Makes one submodule of several nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node

from .common import lift_subgraph_as_module

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether nodes may become one: no path leaves them and comes back."""
    inside = set(partition)
    outside = deque({u for n in inside for u in n.users} - inside)
    last = max(inside, default=None)
    seen: set[Node] = set()
    while outside:
        node = outside.popleft()
        if node in inside:
            return False
        if node in seen or node > last:
            continue
        seen.add(node)
        outside.extend(node.users)
    return True


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """The nodes with producers in front of users, as little moved as possible."""
    wanted, placed = dict.fromkeys(nodes), {}

    def place(node: Node) -> None:
        stack = [node]
        while stack:
            waiting = [
                n for n in stack[-1].all_input_nodes if n in wanted and n not in placed
            ]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                placed[stack.pop()] = None

    for node in wanted:
        if node not in placed:
            place(node)
    return list(placed)


def fuse_as_graphmodule(
    gm: GraphModule, nodes: list[Node], module_name: str, *, always_return_tuple=False
):
    """A module of some nodes.

    Returns:
        The module; the nodes that it takes as inputs; those whose values it returns.

    Raises:
        AssertionError: the nodes belong to another graph, or a path leaves them and
            comes back.
    """
    if any(n.graph is not gm.graph or n._erased for n in nodes):
        raise AssertionError("fuse_as_graphmodule: nodes are not in the module's graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes)
    graph = Graph()
    here: dict[Node, Node] = {}

    def inner(n: Node) -> Node:
        if n not in here:
            if n.op == "get_attr":
                here[n] = graph.node_copy(n)
            else:
                here[n] = graph.placeholder(n.name, type_expr=n.type)
                here[n].meta = dict(n.meta)
        return here[n]

    for node in nodes:
        here[node] = graph.node_copy(node, inner)
    inputs = [n for n in here if n not in inside and n.op != "get_attr"]
    outputs = [n for n in nodes if not inside.issuperset(n.users)]
    results = tuple(here[n] for n in outputs)
    alone = len(results) == 1 and not always_return_tuple
    graph.output(results[0] if alone else results)
    graph.lint()
    made, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return made, tuple(inputs), tuple(outputs)


def insert_subgm(gm: GraphModule, sub_gm: GraphModule, orig_inputs, orig_outputs):
    """Lets the graph call a module in place of nodes whose values it gives."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    last = max([*orig_inputs, *orig_outputs])
    with gm.graph.inserting_after(last):
        call = gm.graph.call_module(name, args=tuple(orig_inputs))
        result = sub_gm.graph.output_node().args[0]
        if not isinstance(result, (tuple, list)):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
    import operator

    place = call
    for i, old in enumerate(orig_outputs):
        with gm.graph.inserting_after(place):
            place = gm.graph.call_function(operator.getitem, (call, i))
        old.replace_all_uses_with(place, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Takes nodes out that nobody outside of them uses."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list, prefix: str = "fused_", always_return_tuple=False
) -> GraphModule:
    """Makes a submodule `fused_0`, `fused_1`... of each list (or dict) of nodes."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(partition)
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs)
        erase_nodes(gm, nodes)
        _reorder(gm)
    return gm


def _reorder(gm: GraphModule) -> None:
    """Brings the graph's nodes into an order in which producers come first."""
    root = gm.graph._root
    for node in topo_sort(gm.graph.nodes):
        root.prepend(node)
