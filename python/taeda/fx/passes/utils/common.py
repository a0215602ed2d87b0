"""Small helpers of passes."""

from __future__ import annotations

from taeda import nn
from taeda.fx.graph import Graph
from taeda.fx.graph_module import GraphModule, _copy_attr
from taeda.fx.node import Node

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(nn.Module):
    """A module with the given submodules: name -> module."""

    def __init__(self, d: dict) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule,
    subgraph: Graph,
    comp_name: str = "",
    class_name: str = "GraphModule",
):
    """A module of a graph that was cut out of another module's.

    Args:
        gm: has what the graph names.
        subgraph: its nodes must name state that lies under `comp_name`.
        comp_name: a prefix of paths that is taken off.
        class_name: of the new module.

    Returns:
        The module, and a dict: its paths -> those of `gm`.
    """
    root, paths = nn.Module(), {}
    prefix = f"{comp_name}." if comp_name else ""
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        source, node.target = node.target, node.target.removeprefix(prefix)
        paths[node.target] = source
        owner, _, field = source.rpartition(".")
        if source == node.target:
            _copy_attr(gm, root, source)
        else:
            place = root
            *inner, _ = node.target.split(".")
            for name in inner:
                if not hasattr(place, name):
                    place.add_module(name, nn.Module())
                place = getattr(place, name)
            setattr(place, field, getattr(gm.get_submodule(owner), field))
    return GraphModule(root, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs do the same steps in the same order on the same values."""
    if len(left.nodes) != len(right.nodes):
        return False
    twins: dict[Node, Node] = {}
    from taeda.fx.node import map_arg

    for a, b in zip(left.nodes, right.nodes, strict=True):
        moved = map_arg((a.args, a.kwargs), twins.get)
        named = a.op in ("placeholder", "output")
        if a.op != b.op or (not named and a.target != b.target):
            return False
        if moved != (b.args, b.kwargs):
            return False
        twins[a] = b
    return True
