"""The frame of passes: their base class, their manager, and the partitioner."""

from __future__ import annotations

from taeda._lazy import attributes

__getattr__ = attributes(
    __name__, submodules=("partitioner", "pass_base", "pass_manager")
)
