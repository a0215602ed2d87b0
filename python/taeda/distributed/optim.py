"""Optimizers over several processes: not in this build, and they say so."""

from __future__ import annotations

from taeda._absent import absent_class
from taeda.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
DistributedOptimizer = absent_class("distributed.optim.DistributedOptimizer")
PostLocalSGDOptimizer = absent_class(
    "distributed.optim.PostLocalSGDOptimizer", Optimizer
)
ZeroRedundancyOptimizer = absent_class(
    "distributed.optim.ZeroRedundancyOptimizer", Optimizer
)
