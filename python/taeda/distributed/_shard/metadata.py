"""Where a shard lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ShardMetadata"]


@dataclass
class ShardMetadata:
    """A shard of a tensor.

    Args:
        shard_offsets: where it begins, by dimension.
        shard_sizes: its shape.
        placement: the rank and device that hold it.
    """

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: Any = None
