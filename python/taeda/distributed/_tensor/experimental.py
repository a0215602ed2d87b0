"""The former name of `taeda.distributed.tensor.experimental`."""

from __future__ import annotations

from ..tensor.experimental import (
    context_parallel,
    implicit_replication,
    local_map,
    register_sharding,
)

__all__ = [
    "context_parallel",
    "implicit_replication",
    "local_map",
    "register_sharding",
]
