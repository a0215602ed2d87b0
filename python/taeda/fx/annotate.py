"""Types of values in graphs, given by hand."""

from __future__ import annotations

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """The value; where it is a proxy, its node has this type from then on.

    Raises:
        RuntimeError: the node has a type already.

    Example:
        >>> taeda.fx.annotate.annotate(3, int)
        3
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"annotate: node {val.node.name} already has a type, {val.node.type}; "
                f"it cannot be {type}"
            )
        val.node.type = type
    return val
