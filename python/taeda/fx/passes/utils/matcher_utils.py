"""Finds the occurrences of a small graph in a large one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import taeda
from taeda._ops import OpOverload
from taeda.fx.graph import Graph
from taeda.fx.graph_module import _get_attr
from taeda.fx.node import Node

from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """An occurrence.

    Attributes:
        anchors: the last nodes of the pattern.
        nodes_map: node of the pattern -> node of the graph, or a value for an input.
        placeholder_nodes: what stands for the pattern's inputs.
        returning_nodes: the nodes whose values the pattern returns.
        name_node_map: names that the pattern gave -> nodes.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


def _inner(nodes_map: dict) -> list[Node]:
    """The graph's nodes that an occurrence consists of, without its inputs."""
    return [g for p, g in nodes_map.items() if p.op not in ("placeholder", "output")]


@dataclass
class SubgraphMatcher:
    """Looks for a pattern, from its results towards its inputs.

    Args:
        pattern: its inputs fit anything.
        match_output: its output must be the graph's.
        match_placeholder: its inputs must be inputs of the graph.
        remove_overlapping_matches: of two that share a node, the first counts.
        ignore_literals: numbers and strings fit any other.

    Raises:
        ValueError: the pattern is empty.
        AssertionError: it holds what nobody uses.
    """

    pattern: Graph
    match_output: bool = False
    match_placeholder: bool = False
    remove_overlapping_matches: bool = True
    ignore_literals: bool = False

    def __post_init__(self) -> None:
        pattern = self.pattern
        if len(pattern.nodes) == 0:
            raise ValueError(
                "SubgraphMatcher cannot be initialized with an empty pattern"
            )
        if any(not n.users and not n.is_impure() for n in pattern.nodes):
            raise AssertionError(
                "SubgraphMatcher cannot be initialized with a pattern with dead code"
            )
        output = pattern.output_node()
        self.inputs = [n for n in pattern.nodes if n.op == "placeholder"]
        self.results = output.all_input_nodes
        last = [n for n in self.results if len(n.users) == 1]
        self.pattern_anchors = [output] if self.match_output else last

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences in a graph.

        A value inside of one is used by nothing outside, and nothing outside stands
        between its nodes.

        Args:
            graph: is searched.
            node_name_match: a last node of the pattern fits one with this in its name.
        """
        choices = []
        for anchor in self.pattern_anchors:
            found = [g for g in graph.nodes if self._same(anchor, g, node_name_match)]
            if found:
                choices.append((anchor, found))
        taken: set[Node] = set()
        matches = []
        for nodes_map in self._combinations(choices, {}, node_name_match):
            inner = _inner(nodes_map)
            if not self._is_closed(nodes_map) or not validate_partition(inner):
                continue
            if self.remove_overlapping_matches and not taken.isdisjoint(inner):
                continue
            taken.update(inner)
            matches.append(
                InternalMatch(
                    anchors=self.pattern_anchors,
                    nodes_map=nodes_map,
                    placeholder_nodes=[nodes_map.get(p) for p in self.inputs],
                    returning_nodes=[nodes_map[p] for p in self.results],
                )
            )
        return matches

    def _combinations(self, choices, nodes_map: dict, name: str):
        """All ways to place the remaining last nodes of the pattern."""
        if not choices:
            if nodes_map:
                yield nodes_map
            return
        (anchor, found), *rest = choices
        for node in found:
            tried = dict(nodes_map)
            if self._fits(anchor, node, tried, name):
                yield from self._combinations(rest, tried, name)

    def _same(self, p: Node, g: Node, name: str) -> bool:
        if p.op == "placeholder" and not self.match_placeholder:
            return True
        if name and name in g.name:
            return True
        if p.op != g.op or p.op in ("placeholder", "output"):
            return p.op == g.op
        if p.op != "get_attr":
            return p.target == g.target
        values = [_get_attr(n.graph.owning_module, n.target) for n in (p, g)]
        if not isinstance(values[0], taeda.Tensor):
            raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")
        return type(values[0]) is type(values[1])

    def _fits(self, p, g, nodes_map: dict, name: str = "") -> bool:
        """Whether a value of the graph fits one of the pattern; notes the nodes."""
        if isinstance(p, Node):
            if p in nodes_map:
                known = nodes_map[p]
                return known is g if isinstance(g, Node) else known == g
            if not isinstance(g, Node):
                if p.op != "placeholder":
                    return self.ignore_literals
            elif g in _nodes(nodes_map) or not self._same(p, g, name):
                return False
            nodes_map[p] = g
            return p.op == "placeholder" or self._arguments_fit(p, g, nodes_map)
        if isinstance(p, (list, tuple)) and isinstance(g, (list, tuple)):
            pairs = zip(p, g, strict=False)
            return len(p) == len(g) and all(self._fits(*x, nodes_map) for x in pairs)
        if self.ignore_literals:
            return True
        return type(p) is type(g) and p == g

    def _arguments_fit(self, p: Node, g: Node, nodes_map: dict) -> bool:
        if isinstance(p.target, OpOverload) and _form(p) != _form(g):
            return self._fits(_by_schema(p), _by_schema(g), nodes_map)
        given = [[*n.args, *n.kwargs.values()] for n in (p, g)]
        return _form(p) == _form(g) and self._fits(*given, nodes_map)

    def _is_closed(self, nodes_map: dict) -> bool:
        inside = {g for p, g in nodes_map.items() if p.op != "placeholder"}
        return all(
            p in self.results or p.op == "placeholder" or inside.issuperset(g.users)
            for p, g in nodes_map.items()
        )


def _nodes(nodes_map: dict) -> set[Node]:
    return {g for g in nodes_map.values() if isinstance(g, Node)}


def _form(node: Node) -> tuple:
    return len(node.args), tuple(node.kwargs)


def _by_schema(node: Node) -> list:
    """All arguments of an operator's call, defaults too."""
    declared = node.target._schema.arguments
    given = {a.name: v for a, v in zip(declared, node.args, strict=False)}
    given.update(node.kwargs)
    return [given.get(a.name, a.default_value) for a in declared]
