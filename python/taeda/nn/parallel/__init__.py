"""A module on several devices at once, within one process."""

from __future__ import annotations

from taeda._lazy import attributes

from .data_parallel import (
    DataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
__getattr__ = attributes(
    __name__,
    {"DistributedDataParallel": "distributed"},
    ("distributed", "scatter_gather"),
)
