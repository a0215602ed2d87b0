"""Parts of distributed tensors whose names may still change."""

from __future__ import annotations

from taeda._lazy import attributes

_PUBLIC = {
    "context_parallel": "_attention",
    "implicit_replication": "_replication",
    "local_map": "_func_map",
    "register_sharding": "_register_sharding",
}

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
_find = attributes(__name__, _PUBLIC)


def __getattr__(name: str):
    return _find(name)
