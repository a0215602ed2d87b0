"""A module on several devices at once, within one process.

The functions are imported last: each has the name of the file that it is in.
"""

from __future__ import annotations

from taeda._lazy import attributes

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

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
