"""Optimizers over several ranks."""

from __future__ import annotations

from taeda._lazy import attributes

_PUBLIC = {
    "DistributedOptimizer": "optimizer",
    "PostLocalSGDOptimizer": "post_localSGD_optimizer",
    "ZeroRedundancyOptimizer": "zero_redundancy_optimizer",
    "_apply_optimizer_in_backward": "apply_optimizer_in_backward",
    "_get_in_backward_optimizers": "apply_optimizer_in_backward",
}
__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
__getattr__ = attributes(
    __name__,
    _PUBLIC,
    (
        "apply_optimizer_in_backward",
        "optimizer",
        "post_localSGD_optimizer",
        "zero_redundancy_optimizer",
    ),
)
