"""Finds the largest pieces of a graph that a backend can take over."""

from __future__ import annotations

from collections.abc import Iterable

from taeda.fx.graph_module import GraphModule
from taeda.fx.node import Node
from taeda.fx.passes.operator_support import OperatorSupportBase
from taeda.fx.passes.tools_common import get_node_target
from taeda.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A set of nodes in the graph's order."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None
    ) -> None:
        self.id = id
        self.nodes: dict[Node, None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node) -> None:
        """Puts a node in."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Takes a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes it has."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Puts supported nodes together as far as no path leaves a piece and comes back.

    Args:
        graph_module: the module.
        operator_support: says which nodes are supported.
        allows_single_node_partition: pieces of one node too.
        non_compute_ops: names of callees that alone are not worth a piece.
        allowed_single_node_partition_ops: names of callees that are, alone.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops=None,
        allowed_single_node_partition_ops=None,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = set(non_compute_ops or ())
        self.allowed_alone = set(allowed_single_node_partition_ops or ())
        self.submodules = dict(graph_module.named_modules())

    def _is_supported(self, node: Node) -> bool:
        named = node.op in ("placeholder", "output", "get_attr")
        answer = self.operator_support.is_node_supported
        return not named and answer(self.submodules, node)

    def propose_partitions(self) -> list[Partition]:
        """The pieces, in the graph's order.

        A number is given to each group of nodes so that no node has a smaller one than
        what it uses: supported nodes get the largest number among their inputs, or the
        next one where that belongs to a group of the other kind. Nodes of one kind with
        one number can then be taken together: a path between them passes only through
        nodes with the same number, which is the number of one kind.
        """
        level: dict[Node, int] = {}
        for node in self.graph_module.graph.nodes:
            supported = int(self._is_supported(node))
            if node.op in ("placeholder", "get_attr"):
                continue
            least = max((level.get(n, 0) for n in node.all_input_nodes), default=0)
            # Numbers of supported groups are odd, those of the others even.
            level[node] = least + (least % 2 != supported)
        groups: dict[int, list[Node]] = {}
        for node, number in level.items():
            if number % 2:
                groups.setdefault(number, []).append(node)
        kept = [nodes for nodes in groups.values() if self._is_worth_it(nodes)]
        return [Partition(i, nodes) for i, nodes in enumerate(kept)]

    def _is_worth_it(self, nodes: list[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [get_node_target(self.submodules, node) for node in nodes]
        counted = [name for name in names if name not in self.non_compute_ops]
        return len(counted) > 1 or any(name in self.allowed_alone for name in counted)

    def fuse_partitions(
        self, partitions: list[Partition], prefix: str = "fused_"
    ) -> GraphModule:
        """Makes a submodule of each piece."""
        return fuse_by_partitions(
            self.graph_module, [list(p.nodes) for p in partitions], prefix
        )

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Finds the pieces and makes submodules of them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
