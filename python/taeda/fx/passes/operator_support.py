"""Says which nodes a backend can take over."""

from __future__ import annotations

from abc import ABC, abstractmethod

from taeda.fx.node import Node

from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]


class OperatorSupportBase(ABC):
    """Answers for each node whether it can be taken over."""

    @abstractmethod
    def is_node_supported(self, submodules, node: Node) -> bool:
        """Whether it can.

        Args:
            submodules: path -> module, of the graph's module.
            node: the node.
        """


def _dtype(node: Node):
    meta = node.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else node.meta["type"]


class OperatorSupport(OperatorSupportBase):
    """The answers of a table.

    Args:
        support_dict: name of the callee (`get_node_target`) -> None for any dtypes, or
            (dtypes of each positional argument or None, keyword -> dtypes).
    """

    def __init__(self, support_dict: dict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        missing = object()
        wanted = self._support_dict.get(get_node_target(submodules, node), missing)
        if wanted is None or wanted is missing:
            return wanted is None
        by_place, by_name = wanted
        pairs = [*zip(node.args, by_place, strict=False)]
        pairs += [(node.kwargs[k], v) for k, v in by_name.items() if k in node.kwargs]
        return all(
            dtypes is None or not isinstance(a, Node) or _dtype(a) in dtypes
            for a, dtypes in pairs
        )


def create_op_support(is_node_supported) -> OperatorSupportBase:
    """The answers of a function (submodules, node) -> bool."""

    class Answers(OperatorSupportBase):
        def is_node_supported(self, submodules, node: Node) -> bool:
            return is_node_supported(submodules, node)

    return Answers()


def _joined(op_support, join) -> OperatorSupportBase:
    return create_op_support(
        lambda submodules, node: join(
            each.is_node_supported(submodules, node) for each in op_support
        )
    )


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of them support."""
    return _joined(op_support, all)


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What any of them supports."""
    return _joined(op_support, any)


class OpSupports:
    """Common answers."""

    @classmethod
    def decline_if_input_dtype(cls, dtype) -> OperatorSupportBase:
        """Everything but nodes with an argument of this dtype."""
        return create_op_support(
            lambda _, node: all(_dtype(a) != dtype for a in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Everything but the nodes of these names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)
