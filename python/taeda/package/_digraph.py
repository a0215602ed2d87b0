"""Graphs of modules and what they need."""

from __future__ import annotations

__all__ = ["DiGraph"]


class DiGraph:
    """Nodes with attributes, and edges from a node to those that it needs."""

    def __init__(self) -> None:
        self._nodes: dict = {}
        self._after: dict = {}
        self._before: dict = {}

    def add_node(self, n, **attributes) -> None:
        """A node, or more attributes of one that is there."""
        self._nodes.setdefault(n, {}).update(attributes)
        self._after.setdefault(n, {})
        self._before.setdefault(n, {})

    def add_edge(self, u, v) -> None:
        """`u` needs `v`; both become nodes."""
        self.add_node(u)
        self.add_node(v)
        self._after[u][v] = self._before[v][u] = True

    def _found(self, table: dict, n):
        if n not in table:
            raise ValueError(f"node {n!r} is not in the graph")
        return iter(table[n])

    def successors(self, n):
        """Those that a node needs; ValueError for one that is not there."""
        return self._found(self._after, n)

    def predecessors(self, n):
        """Those that need a node; ValueError for one that is not there."""
        return self._found(self._before, n)

    @property
    def edges(self):
        """Pairs of nodes."""
        for u, successors in self._after.items():
            for v in successors:
                yield u, v

    @property
    def nodes(self) -> dict:
        """Attributes by node."""
        return self._nodes

    def __iter__(self):
        return iter(self._nodes)

    def __contains__(self, n) -> bool:
        try:
            return n in self._nodes
        except TypeError:
            return False

    def _closure(self, table: dict, n) -> set:
        found, waiting = set(), [n]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self._found(table, node)
        return found

    def forward_transitive_closure(self, src: str) -> set:
        """The node and all that it needs, by others too."""
        return self._closure(self._after, src)

    def backward_transitive_closure(self, src: str) -> set:
        """The node and all that need it, by others too."""
        return self._closure(self._before, src)

    def first_path(self, dst) -> list:
        """A way to a node from one that nobody needs."""
        path = [dst]
        while True:
            before = [n for n in self._before.get(path[-1], ()) if n not in path]
            if not before:
                return path[::-1]
            path.append(before[0])

    def all_paths(self, src: str, dst: str) -> str:
        """The nodes and edges on ways between two nodes, as text for GraphViz."""
        on_the_way = self._closure(self._after, src) & self._closure(self._before, dst)
        part = DiGraph()
        for u, v in self.edges:
            if u in on_the_way and v in on_the_way:
                part.add_edge(u, v)
        return part.to_dot()

    def to_dot(self) -> str:
        """The graph as text for GraphViz."""
        lines = [f'"{u}" -> "{v}";\n' for u, v in self.edges]
        return (
            "digraph G {\nrankdir = LR;\nnode [shape=box];\n" + "".join(lines) + "}\n"
        )
