"""Parts of graph capture that programs import."""

from __future__ import annotations

from taeda._lazy import attributes

__getattr__ = attributes(
    __name__, submodules=("optimization", "proxy_tensor", "symbolic_shapes")
)
