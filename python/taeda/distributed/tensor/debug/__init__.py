"""What distributed tensors send, and where their parts lie."""

from __future__ import annotations

from taeda._lazy import attributes

__all__ = ["CommDebugMode", "visualize_sharding"]
_find = attributes(
    __name__, {"CommDebugMode": "_comm_mode", "visualize_sharding": "_visualize"}
)


def __getattr__(name: str):
    return _find(name)
