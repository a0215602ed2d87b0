"""Small questions that passes ask about nodes."""

from __future__ import annotations

import heapq
import re

import taeda
from taeda.fx._names import qualified_name
from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node

__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}
Tensors, TensorOrTensors, NodeList, NodeSet, Names = (object,) * 5  # annotations


def get_acc_ops_name(k) -> str:
    """The name under which a function or class stands in tables of support."""
    if isinstance(k, str):
        return k
    ops = f"{taeda.__name__}.ops"
    module = re.sub(r"^(taeda|torch)\._ops\b", ops, k.__module__ or "")
    if "acc_ops" in module:
        return f"acc_ops.{k.__name__}"
    return f"{module}.{k.__name__}".lstrip(".")


def get_node_target(submodules, node: Node) -> str:
    """What a node calls, as a name: a module's class, a function's path, a method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, got {node.op}"
        )
    if node.op == "call_method":
        return node.target
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    return qualified_name(node.target)


def is_node_output_tensor(node: Node) -> bool:
    """Whether its value was a tensor when the shapes were noted."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, taeda.Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Brings producers in front of users; else the order stays as it is."""
    rank = {node: i for i, node in enumerate(gm.graph.nodes)}
    nodes = list(rank)
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [rank[node] for node in nodes if not missing[node]]
    heapq.heapify(ready)
    order: list[Node] = []
    while ready:
        order.append(nodes[heapq.heappop(ready)])
        for user in order[-1].users:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, rank[user])
    if len(order) < len(nodes):
        left = [node for node in nodes if missing[node]]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    for node in order:
        gm.graph._root.prepend(node)
    return gm


def legalize_graph(gm: GraphModule) -> GraphModule:
    """The same."""
    return stable_topological_sort(gm)
