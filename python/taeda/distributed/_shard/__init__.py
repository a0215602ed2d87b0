"""Tensors of which each rank holds shards, in the form of FSDP's state dicts."""

from __future__ import annotations

from taeda._lazy import attributes

_find = attributes(__name__, {}, ("metadata", "sharded_tensor"))


def __getattr__(name: str):
    return _find(name)
