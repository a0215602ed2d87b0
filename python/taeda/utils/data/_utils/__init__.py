"""The loader's parts: collating samples, workers, and the way batches travel."""

from __future__ import annotations

_PARTS = "channel collate failure fetch memory pin_memory transfer worker".split()


def __getattr__(name: str):
    if name in _PARTS:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
