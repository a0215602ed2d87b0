"""Tensor parallelism: modules whose weights are cut over the ranks of a mesh."""

from __future__ import annotations

from taeda._lazy import attributes

_PUBLIC = {
    "ColwiseParallel": "style",
    "ParallelStyle": "style",
    "PrepareModuleInput": "_prepare",
    "PrepareModuleInputOutput": "_prepare",
    "PrepareModuleOutput": "_prepare",
    "RowwiseParallel": "style",
    "SequenceParallel": "style",
    "loss_parallel": "loss",
    "parallelize_module": "api",
}

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]
_find = attributes(__name__, _PUBLIC, ("api", "loss", "style"))


def __getattr__(name: str):
    return _find(name)
