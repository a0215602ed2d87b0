"""Collectives between processes: not in this build, and it says so.

Programs for one process run: `is_available()` and `is_initialized()` are False.
"""

from __future__ import annotations

import os
from enum import IntEnum

_COLLECTIVES = """
all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all
all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list
destroy_process_group gather gather_object get_backend get_process_group_ranks get_rank
get_world_size irecv isend monitored_barrier new_group recv recv_object_list reduce
reduce_scatter reduce_scatter_tensor scatter scatter_object_list send send_object_list
""".split()

__all__ = [
    *_COLLECTIVES,
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "group",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]


class ReduceOp(IntEnum):
    """How a reducing collective combines the processes' values."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class Backend(str):
    """Name of a communication library."""

    __slots__ = ()
    UNDEFINED, GLOO, NCCL, MPI = "undefined", "gloo", "nccl", "mpi"


class ProcessGroup:
    """A set of processes; none can be made in this build."""


class Work:
    """A collective under way; none can be started in this build."""


class GroupMember:
    """Groups that exist from the start."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember


def is_available() -> bool:
    """Whether the build has process groups: no."""
    return False


def is_initialized() -> bool:
    """Whether the default group exists: no."""
    return False


def _no_backend() -> bool:
    """Whether the build has this communication library: no."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = _no_backend
is_ucc_available = is_xccl_available = _no_backend


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(*args, **kwargs) -> None:
    """Makes the default group.

    Raises:
        NotImplementedError: always, in this build.
    """
    raise NotImplementedError(
        "distributed.init_process_group: this build has no process groups"
    )


def _collective(name: str):
    def refuse(*args, **kwargs):
        raise ValueError(
            f"distributed.{name}: Default process group has not been initialized, "
            "please make sure to call init_process_group."
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises ValueError: there is no process group in this build."
    return refuse


globals().update((name, _collective(name)) for name in _COLLECTIVES)
