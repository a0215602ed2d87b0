"""Collectives through which gradients flow, and modules at other workers."""

from __future__ import annotations

from taeda._lazy import attributes

from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "RemoteModule",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
__getattr__ = attributes(__name__, {"RemoteModule": "api.remote_module"}, ("api",))
