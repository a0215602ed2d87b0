"""Passes: what reads or changes whole graphs."""

from __future__ import annotations

from taeda._lazy import attributes

__getattr__ = attributes(
    __name__,
    submodules=(
        *("fake_tensor_prop", "graph_drawer", "graph_manipulation", "infra"),
        *("net_min_base", "operator_support", "shape_prop", "split_module"),
        *("split_utils", "tools_common", "utils"),
    ),
)
