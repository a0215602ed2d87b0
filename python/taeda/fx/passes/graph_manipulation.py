"""Small changes of graphs, and the sizes of what they compute."""

from __future__ import annotations

from typing import NamedTuple

from taeda.fx.graph import Graph
from taeda.fx.node import Node, map_arg

from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]


class size_bytes(NamedTuple):
    """Bytes of a node's value, and with the parameters that it needs."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module, old_op: str, old_target, new_op: str, new_target
) -> None:
    """Lets all nodes of one kind and target be of another."""
    graph, here = Graph(), {}
    for node in fx_module.graph.nodes:
        if (node.op, node.target) == (old_op, old_target):
            args, kwargs = map_arg((node.args, node.kwargs), here.__getitem__)
            here[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            here[node] = graph.node_copy(node, here.__getitem__)
    fx_module.graph = graph


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What `ShapeProp` noted; RuntimeError where it did not run."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape "
            "propagation has run."
        )
    return meta


def get_size_of_node(fx_module, node: Node) -> size_bytes:
    """The bytes of a node."""
    meta = get_tensor_meta(node)
    output = meta.shape.numel()
    held = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        held = sum(p.numel() for p in module.parameters())
    return size_bytes(
        output * meta.dtype.itemsize, (output + held) * meta.dtype.itemsize
    )


def get_size_of_all_nodes(fx_module, args=None) -> None:
    """Notes the bytes of each node as its attribute `size_bytes`.

    Args:
        fx_module: the GraphModule.
        args: inputs with which shapes are noted first, if given.
    """
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    *computed, _ = fx_module.graph.nodes
    for node in computed:
        node.size_bytes = get_size_of_node(fx_module, node)
