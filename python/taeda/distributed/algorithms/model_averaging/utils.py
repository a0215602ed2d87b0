"""Averages of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import taeda

from ... import group as _groups
from ..._collectives import all_reduce

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]


def average_parameters(params: Iterator, process_group) -> None:
    """Replaces parameters by their averages over ranks; those of a dtype together.

    Args:
        params: the parameters.
        process_group: the ranks; all if None.
    """
    group = process_group if process_group is not None else _groups.WORLD
    by_dtype: dict = {}
    for p in params:
        by_dtype.setdefault(p.dtype, []).append(p)
    with taeda.no_grad():
        for parameters in by_dtype.values():
            flat = taeda.cat([p.detach().reshape(-1) for p in parameters])
            flat /= group.size()
            all_reduce(flat, group=group)
            parts = flat.split([p.numel() for p in parameters])
            for p, part in zip(parameters, parts, strict=True):
                p.detach().copy_(part.view(p.shape))


def get_params_to_average(params: Iterable) -> list:
    """The parameters with gradients, of a list or of an optimizer's groups."""
    found = []
    for entry in params:
        listed = entry["params"] if isinstance(entry, dict) else [entry]
        found += [p for p in listed if p.grad is not None]
    return found


def average_parameters_or_parameter_groups(params: Iterable, process_group) -> None:
    """The same as `average_parameters`, of those with gradients."""
    average_parameters(iter(get_params_to_average(params)), process_group)
