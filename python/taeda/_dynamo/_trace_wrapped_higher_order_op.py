"""Indexing by mapped tensors, which needs nothing special here."""

from __future__ import annotations

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """A context in which `x[i]` takes tensors as indices under `vmap`; always so."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error) -> None:
        return None
