"""What passes share."""

from __future__ import annotations

from taeda._lazy import attributes

_WHERE = dict.fromkeys(
    ("HolderModule", "compare_graphs", "lift_subgraph_as_module"), "common"
)
__getattr__ = attributes(__name__, _WHERE, ("common", "fuser_utils", "matcher_utils"))
