"""The loader's parts: collating samples, workers, and the way batches travel."""

from __future__ import annotations


def __getattr__(name: str):
    if name in ("collate", "failure", "fetch", "pin_memory", "transfer", "worker"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
