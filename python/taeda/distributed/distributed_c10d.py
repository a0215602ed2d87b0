"""All of the groups' functions in one module, where PyTorch has them."""

from __future__ import annotations

from typing import Any, NewType

import taeda

from . import (
    _collectives,
    _join,
    _messages,
    _objects,
    _subgroups,
    _types,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from . import _world as _world_module
from ._collectives import (
    _all_gather_base,
    _reduce_scatter_base,
)
from ._debug import DebugLevel, get_debug_level
from ._gloo import ProcessGroupGloo
from ._join import _abort_process_group, _get_default_group  # noqa: F401
from ._join import _new_group as _new_group_with_tag
from ._join import _not_in_group as _rank_not_in_group  # noqa: F401
from ._messages import _coalescing_manager, _CoalescingManager  # noqa: F401
from ._objects import _object_to_tensor, _tensor_to_object  # noqa: F401
from ._process_group import ProcessGroup
from ._rendezvous import register_rendezvous_handler, rendezvous
from ._work import Work
from ._world import _world as _the_world
from .constants import default_pg_nccl_timeout, default_pg_timeout

_PARTS = (_collectives, _join, _messages, _objects, _subgroups, _types, _world_module)
for _part in _PARTS:
    for _name in _part.__all__:
        globals()[_name] = getattr(_part, _name)
_world = _the_world

# The name of a group, as annotations say it.
GroupName = NewType("GroupName", str)

__all__ = [
    "DebugLevel",
    "GroupName",
    *(name for part in _PARTS for name in part.__all__),
    "ProcessGroup",
    "ProcessGroupGloo",
    "Work",
    "_all_gather_base",
    "_reduce_scatter_base",
    "default_pg_nccl_timeout",
    "default_pg_timeout",
    "get_debug_level",
    "get_default_backend_for_device",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "reduce_op",
    "register_rendezvous_handler",
    "rendezvous",
]
__all__ = list(dict.fromkeys(__all__))


class _ReduceOps:
    """The operations under their older place, `reduce_op.SUM`."""

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_types.ReduceOp, name)


reduce_op = _ReduceOps()


def get_default_backend_for_device(device) -> str:
    """The backend of a kind of device.

    Args:
        device: a device or its kind, "cpu".

    Raises:
        ValueError: no backend serves it.
    """
    kind = str(device).partition(":")[0]
    found = _world_module.Backend.default_device_backend_map.get(kind)
    if not found:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def is_backend_available(backend: str) -> bool:
    """Whether groups can be made with a backend: gloo, or one that was registered."""
    check = globals().get(f"is_{backend.lower()}_available")
    if check is not None:
        return check()
    known = _world_module.Backend.backend_list
    return backend.lower() in known and backend.lower() != "undefined"


def _get_process_group_name(pg: ProcessGroup) -> str:
    return _the_world.pg_names.get(pg, "None")


def _get_group_size(group: Any) -> int:
    return _join.get_world_size(group)


def _get_group_tag(pg: ProcessGroup) -> str:
    return _the_world.pg_to_tag[pg]


def _get_default_store():
    return _get_default_group().get_group_store()


def _get_process_group_store(pg: ProcessGroup):
    return pg.get_group_store()


def _get_pg_default_device(group: ProcessGroup | None = None):
    """The device of tensors that a group's own bookkeeping uses."""
    return taeda.device(_join.own_device(group).type)


def _get_object_coll_device(group: ProcessGroup | None = None) -> str:
    return _get_pg_default_device(group).type


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of a name.

    Raises:
        ValueError: there is none.
    """
    for pg, name in _the_world.pg_names.items():
        if name == group_name:
            return pg
    raise ValueError(f"Could not resolve the process group: {group_name}")


def _set_pg_timeout(timeout, group: ProcessGroup | None = None) -> None:
    """Sets the limit of a group's operations from now on."""
    (group or _get_default_group()).set_timeout(timeout)


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    for pg in _the_world.tags_to_pg.get(tag, []):
        if list(_the_world.pg_group_ranks[pg]) == list(ranks):
            return pg
    return None


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int):
    found = _find_pg_by_ranks_and_tag(tag, ranks)
    return found or _new_group_with_tag(ranks, None, None, None, tag)
