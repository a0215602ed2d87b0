"""Batches in page-locked memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import taeda


def pin_memory(data, device=None):
    """The same structure with its tensors in page-locked memory.

    Objects with a method `pin_memory` decide for themselves.
    """
    if isinstance(data, taeda.Tensor):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    from taeda.utils.data._utils.collate import _rebuild_mapping, _rebuild_sequence

    if isinstance(data, Mapping):
        values = {k: pin_memory(v, device) for k, v in data.items()}
        return _rebuild_mapping(data, values)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v, device) for v in data))
    if isinstance(data, tuple):
        return [pin_memory(v, device) for v in data]
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [pin_memory(v, device) for v in data])
    return data.pin_memory() if hasattr(data, "pin_memory") else data
