"""Cutting inputs into parts for devices, and joining their outputs."""

from __future__ import annotations

import taeda
from taeda import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def devices_of(device_ids):
    """Devices by number or name; all CUDA devices where None."""
    if device_ids is None:
        if not taeda.cuda.is_available():
            return []
        device_ids = range(taeda.cuda.device_count())
    return [taeda.device("cuda", d) if isinstance(d, int) else d for d in device_ids]


def scatter(inputs, target_gpus, dim: int = 0):
    """Cut every tensor of nested `inputs` along `dim`, a part for each device.

    Args:
        inputs: tensors in tuples, lists and dictionaries; other values are repeated.
        target_gpus: devices.
        dim: dimension to cut.

    Returns:
        list: the inputs of each device; fewer where tensors are too small.
    """
    devices = devices_of(target_gpus)
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(devices), dim)
        return [p.to(d) for p, d in zip(parts, devices, strict=False)]
    if isinstance(inputs, (tuple, list)) and inputs:
        columns = zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)
        kind = type(inputs)
        named = hasattr(inputs, "_fields")
        return [kind(*column) if named else kind(column) for column in columns]
    if isinstance(inputs, dict) and inputs:
        rows = scatter(list(inputs.items()), target_gpus, dim)
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in devices]


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus, dim: int = 0):
    """Positional and named inputs of each device: two tuples of equal length."""
    from itertools import zip_longest

    cut = (scatter(x, target_gpus, dim) if x else [] for x in (inputs, kwargs))
    calls = [(row or (), named or {}) for row, named in zip_longest(*cut)]
    return tuple(row for row, _ in calls), tuple(named for _, named in calls)


def gather(outputs, target_device, dim: int = 0):
    """Join the outputs of all devices on one; the inverse of `scatter`."""
    first = outputs[0]
    if isinstance(first, Tensor):
        if first.dim() == 0:
            outputs = [t.unsqueeze(0) for t in outputs]
        (target,) = devices_of([target_device])
        return taeda.cat([t.to(target) for t in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(row) != len(first) for row in outputs):
            raise ValueError("All dicts must have the same number of keys")
        joined = (
            (k, gather([o[k] for o in outputs], target_device, dim)) for k in first
        )
        return type(first)(joined)
    parts = [gather(list(c), target_device, dim) for c in zip(*outputs, strict=True)]
    kind = type(first)
    return kind(*parts) if hasattr(first, "_fields") else kind(parts)
