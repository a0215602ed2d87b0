"""Puts one piece of graph in place of another wherever it occurs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from taeda import nn

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = [
    "Match",
    "ReplacedPatterns",
    "replace_pattern",
    "replace_pattern_with_filters",
]


class Match(NamedTuple):
    """An occurrence: its last node, and node of the pattern -> node of the graph."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """The same with the nodes that were put in."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def replace_pattern(gm: GraphModule, pattern, replacement) -> list[Match]:
    """Replaces what a function computes by what another one computes.

    Occurrences do not overlap; a value inside of one may not be used outside.

    Args:
        gm: changed in place and recompiled.
        pattern: the function, module or graph that is looked for.
        replacement: what stands in its place; takes the same arguments.

    Returns:
        The occurrences.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: taeda.relu(x) + 1)
        >>> found = taeda.fx.replace_pattern(
        ...     gm, lambda a: taeda.relu(a), lambda a: taeda.tanh(a)
        ... )
        >>> len(found), gm(taeda.zeros(1))
        (1, tensor([1.]))
    """
    done = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=each.anchor, nodes_map=each.nodes_map) for each in done]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals: bool = False,
    replacement_callback=None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same with a say in which occurrences are replaced, and by what.

    Args:
        gm, pattern, replacement: as before.
        match_filters: functions of (match, graph, pattern's graph); all must agree.
        ignore_literals: numbers and strings of the pattern fit any other.
        replacement_callback: makes the graph for an occurrence, from the same three.
        node_name_match: a pattern of one node fits the node of this name too.

    Returns:
        The occurrences, with the new nodes.

    Raises:
        AssertionError: neither a replacement nor a callback is given.
    """
    if (replacement is None) == (replacement_callback is None):
        raise AssertionError("give exactly one of replacement, replacement_callback")
    wanted = _graph_of(pattern)
    new = None if replacement is None else _graph_of(replacement)
    matcher = SubgraphMatcher(
        wanted,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )
    accepted = [
        match
        for match in matcher.match(gm.graph, node_name_match)
        if all(accept(match, gm.graph, wanted) for accept in match_filters or ())
    ]
    done: list[ReplacedPatterns] = []
    moved: dict[Node, Any] = {}
    for match in accepted:
        graph = new or _graph_of(replacement_callback(match, gm.graph, wanted))
        done.append(_replace(gm, match, graph, moved))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _take_state(gm, replacement)
    return done


def _graph_of(given) -> Graph:
    if isinstance(given, Graph):
        return given
    if isinstance(given, GraphModule):
        return given.graph
    return symbolic_trace(given).graph


def _replace(
    gm: GraphModule, match: InternalMatch, new: Graph, moved: dict
) -> ReplacedPatterns:
    """Puts a graph in the place of one occurrence.

    Args:
        moved: results of earlier occurrences -> what stands for them now; an input of
            this occurrence may be one.
    """
    inputs = [
        moved.get(n, n) if isinstance(n, Node) else n for n in match.placeholder_nodes
    ]
    names = [n for n in new.nodes if n.op == "placeholder"]
    if len(inputs) != len(names):
        raise AssertionError(
            f"the pattern has {len(inputs)} inputs and the replacement {len(names)}"
        )
    here = dict(zip(names, inputs, strict=True))
    old_inputs = {n for n in inputs if isinstance(n, Node)}
    inside = [n for n in match.nodes_map.values() if isinstance(n, Node)]
    inside = [n for n in inside if n not in old_inputs]
    users = [user for n in match.returning_nodes for user in n.users]
    place = min(users, default=max(match.returning_nodes).next)
    with gm.graph.inserting_before(place):
        known = set(here)
        result = gm.graph.graph_copy(new, here)
    added = [here[n] for n in new.nodes if n in here and n not in known]
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            "pattern and replacement return different numbers of values"
        )
    for old, value in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(value)
        moved[old] = value
    for node in sorted(set(inside), reverse=True):
        if not node._erased and node.op != "placeholder":
            gm.graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _take_state(gm: GraphModule, replacement: nn.Module) -> None:
    """Gives the module what the replacement's nodes name and it does not have."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("get_attr", "call_module") or _has(gm, node.target):
            continue
        if not _has(replacement, node.target):
            raise RuntimeError(
                f"Attempted to create a '{node.op}' node for {node.target}, which "
                "neither the module nor the replacement has"
            )
        _copy_attr(replacement, gm, node.target)
    gm.graph.lint()


def _has(module, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True
