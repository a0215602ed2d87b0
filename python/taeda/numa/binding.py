"""What a program asks a launcher for: where its workers shall run.

Only the options are here. No launcher of this library binds workers yet, and none
takes such options.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AffinityMode", "NumaOptions"]


class AffinityMode(StrEnum):
    """The processors that a worker may run on, by where its GPU is attached."""

    NODE = "node"  # all of the node of memory
    SOCKET = "socket"  # all of the nodes of the socket
    EXCLUSIVE = "exclusive"  # a share of the node's, which no other worker has
    CORE_COMPLEX = "core-complex"  # those of the node that share a cache


@dataclass(frozen=True)
class NumaOptions:
    """How workers are bound.

    Args:
        affinity_mode: to which processors.
        should_fall_back_if_binding_fails: whether a worker that cannot be bound runs
            unbound in place of failing.
    """

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False
