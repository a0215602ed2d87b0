"""What functional collectives are told of groups and operations."""

from __future__ import annotations

from ._process_group import ProcessGroup
from ._types import ReduceOp
from .device_mesh import DeviceMesh
from .distributed_c10d import (
    _find_or_create_pg_by_ranks_and_tag,
    _resolve_process_group,
)

__all__ = ["_operation", "_resolve_group", "_resolve_group_name"]

_OPERATIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")


def _operation(name) -> ReduceOp:
    if isinstance(name, ReduceOp):
        return name
    if name.lower() not in _OPERATIONS:
        raise ValueError(f"reduceOp: expected one of {_OPERATIONS}, got {name!r}")
    return getattr(ReduceOp, name.upper())


def _resolve_group(group, tag: str = "") -> ProcessGroup:
    """The group that any of its descriptions means."""
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError(
                "Only 1D mesh is supported, pass in (DeviceMesh, int) together if "
                "mesh > 1D"
            )
        return group.get_group()
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    if isinstance(group, list):
        flat = [
            r for part in group for r in (part if isinstance(part, list) else [part])
        ]
        return _find_or_create_pg_by_ranks_and_tag(tag, flat, len(flat))
    raise ValueError(
        "Invalid type for group, must be one of List, ProcessGroup, DeviceMesh, or "
        f"(DeviceMesh, int), got {group!r}"
    )


def _resolve_group_name(group, tag: str = "") -> str:
    return _resolve_group(group, tag).group_name
