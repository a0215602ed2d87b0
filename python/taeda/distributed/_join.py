"""Joining a world of ranks, groups within it, and leaving."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

import taeda

from ._process_group import ProcessGroup
from ._types import PrefixStore, Store
from ._world import Backend, BackendConfig, GroupMember, _world
from .constants import default_pg_timeout

__all__ = [
    "abort_process_group",
    "destroy_process_group",
    "get_backend",
    "get_backend_config",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_initialized",
    "new_group",
]


def is_initialized() -> bool:
    """Whether the default group exists."""
    return _world.default_pg is not None


def _get_default_group() -> ProcessGroup:
    if _world.default_pg is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world.default_pg


def _group_or_default(group) -> ProcessGroup:
    """The group that a collective is called on.

    Raises:
        ValueError: it is none of this process's groups.
    """
    if group is None:
        return _get_default_group()
    if group not in _world.pg_map and not isinstance(group, ProcessGroup):
        raise ValueError(
            f"Process group {group} is not initialized in the world group map. Please "
            "initialize the group first."
        )
    return group


def own_device(group):
    """The device of tensors that a group's bookkeeping sends, the CPU if it can."""
    import taeda

    kinds = _group_or_default(group)._backends
    if not kinds or "cpu" in kinds:
        return taeda.device("cpu")
    kind = next(iter(kinds))
    return taeda.device(kind, taeda.cuda.current_device() if kind == "cuda" else 0)


def _not_in_group(group) -> bool:
    """Whether this rank is outside of the group."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's number in a group, -1 outside of it."""
    if _not_in_group(group):
        return -1
    default = _get_default_group()
    return (group or default).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many ranks a group has, -1 outside of it."""
    if _not_in_group(group):
        return -1
    return (group or _get_default_group()).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of a group's backend.

    Raises:
        ValueError: this rank is not in the group.
    """
    pg = group or _get_default_group()
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    return Backend(_world.pg_map[pg][0])


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Which backend serves which kind of device in a group, "cpu:gloo"."""
    pg = group or _get_default_group()
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    return str(_world.pg_backend_config[pg])


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """A global rank's number in a group.

    Raises:
        ValueError: the rank is not in it.
    """
    if group is _world.default_pg:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of a group's rank.

    Raises:
        ValueError: the group has no such rank.
    """
    if group is _world.default_pg:
        return group_rank
    for global_rank, own in _ranks_of(group).items():
        if own == group_rank:
            return global_rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def _ranks_of(group) -> dict[int, int]:
    if group not in _world.pg_group_ranks:
        raise ValueError(
            f"Group {group} is not registered, please create group with "
            f"{taeda.__name__}.distributed.new_group API"
        )
    return _world.pg_group_ranks[group]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of a group, in its order."""
    return list(_ranks_of(group or _get_default_group()))


def get_pg_count() -> int:
    """How many groups this process has made."""
    return _world.group_count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's number on its machine, from LOCAL_RANK.

    Raises:
        RuntimeError: it is not set, and there is no fallback.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work outside of a launcher."
    )


def _checked_timeout(timeout) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    return timeout


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any | None = None,
    device_id: Any | None = None,
    _ranks: list[int] | None = None,
) -> None:
    """Joins the default group; returns when all ranks have come.

    Args:
        backend: "gloo", "mpi" under `mpiexec`, one that was registered, or
            "cpu:gloo,cuda:..."; by default that of each device of this build.
        init_method: where ranks meet; by default "env://", which the launcher sets.
        timeout: of joining, and of each collective; half an hour by default.
        world_size: how many ranks there are, where `init_method` does not tell.
        rank: this process's number, the same.
        store: where ranks meet, in place of `init_method`.
        group_name: no longer used by programs.
        pg_options: what the backend takes.
        device_id: the process's device; of no use on the CPU.

    Raises:
        ValueError: it was called before, or the environment lacks a variable.
        DistStoreError: ranks did not come in time; the text names them.
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, (
        "Cannot specify both init_method and store."
    )
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    name = Backend(backend) if backend else Backend("undefined")
    limit = _checked_timeout(timeout)
    _known(BackendConfig(name))
    if name == Backend.MPI:
        from . import _mpi

        rank, world_size = _mpi.place(rank, world_size)
        if store is None and init_method is None and "MASTER_ADDR" not in os.environ:
            store = _mpi.meet(limit)
    if store is None:
        from ._rendezvous import rendezvous

        url = init_method or "env://"
        store, rank, world_size = next(rendezvous(url, rank, world_size, timeout=limit))
        store.set_timeout(limit)
        # Groups that come later do not read keys of earlier ones.
        store = PrefixStore("default_pg", store)
    ranks = list(range(world_size))
    pg = _make_group(ranks, rank, name, store, "0", limit, "default_pg", pg_options)
    _world.default_pg = pg
    _watch(pg, store)
    if device_id is not None:
        pg.bound_device_id = device_id


def _watch(pg: ProcessGroup, store: Store) -> None:
    """Lets the ranks tell each other where they stand when one fails."""
    if pg.size() > 1 and any(
        getattr(b, "keeps_record", False) for b in pg._backends.values()
    ):
        from . import _flight

        _flight.begin(store, pg.rank())


def _known(config: BackendConfig) -> None:
    for name in config.get_device_backend_map().values():
        if name == Backend.NCCL:
            from ._nccl_library import library

            library()
        plugin = Backend._plugins.get(name.upper())
        if plugin is None and name not in (
            Backend.GLOO,
            Backend.FAKE,
            Backend.MPI,
            Backend.NCCL,
        ):
            if name in (Backend.UCC, Backend.XCCL):
                raise RuntimeError(
                    f"Distributed package doesn't have {name.upper()} built in"
                )
            raise AssertionError(f"Unknown backend type {name}")


def _make_group(
    ranks: list[int],
    rank: int,
    backend: str,
    store: Store,
    name: str,
    timeout: timedelta,
    desc: str,
    options=None,
    tag: str = "",
) -> ProcessGroup:
    """A group of which this rank is a member, entered in the world."""
    config = BackendConfig(Backend(backend))
    own = PrefixStore(f"{name}/", store)
    pg = ProcessGroup(own, rank, len(ranks))
    made: dict[str, Any] = {}
    for device, kind in config.get_device_backend_map().items():
        if kind not in made:
            made[kind] = _make_backend(
                kind,
                PrefixStore(f"{device}/", own),
                rank,
                ranks,
                timeout,
                name,
                options,
            )
        if isinstance(made[kind], ProcessGroup):
            # A backend that is a whole group takes its place.
            pg = made[kind]
            break
        pg._register_backend(device, None, made[kind])
    pg._set_group_name(name)
    pg._set_group_desc(desc)
    shown = Backend(backend)
    if shown == Backend.UNDEFINED and len(set(made)) == 1:
        shown = Backend(next(iter(made)))
    _enter(pg, ranks, shown, own, repr(config), tag)
    return pg


def _enter(pg: ProcessGroup, ranks, backend: str, store: Store, config, tag) -> None:
    """Makes a group known; `ranks` are its global ranks."""
    _world.pg_map[pg] = (backend, store)
    _world.pg_names[pg] = pg.group_name
    _world.pg_backend_config[pg] = config
    _world.pg_group_ranks[pg] = {r: i for i, r in enumerate(ranks)}
    _world.pg_to_tag[pg] = tag
    _world.tags_to_pg.setdefault(tag, []).append(pg)
    _world.group_count += 1


def _leave(pg: ProcessGroup) -> None:
    _world.forget(pg)
    pg.shutdown()
    pg._backends.clear()


class _DistributedBackendOptions:
    """What a registered backend with the extended interface is told."""

    def __init__(self, store, rank, ranks, timeout, name) -> None:
        self.store, self.group_rank, self.group_size = store, rank, len(ranks)
        self.timeout, self.group_id = timeout, name
        self.global_ranks_in_group = list(ranks)


def _make_backend(kind, store, rank, ranks, timeout, name, options):
    plugin = Backend._plugins.get(kind.upper())
    if plugin is not None:
        if plugin.extended_api:
            told = _DistributedBackendOptions(store, rank, ranks, timeout, name)
            return plugin.creator_fn(told, options)
        return plugin.creator_fn(store, rank, len(ranks), timeout)
    if kind == Backend.FAKE:
        from ._fake import FakeBackend

        return FakeBackend(rank, len(ranks), name)
    if kind == Backend.MPI:
        from ._mpi import ProcessGroupMPI

        return ProcessGroupMPI(ranks, rank, timeout, group_name=name)
    if kind == Backend.NCCL:
        from ._nccl import NCCL_LIMIT, ProcessGroupNCCL

        options = options or ProcessGroupNCCL.Options()
        options._timeout = NCCL_LIMIT if timeout is default_pg_timeout else timeout
        return ProcessGroupNCCL(store, rank, len(ranks), options, group_name=name)
    from ._gloo import ProcessGroupGloo

    return ProcessGroupGloo(store, rank, len(ranks), timeout, group_name=name)


def _group_name(ranks: list[int]) -> str:
    """A name on which the members agree without messages."""
    return f"{_world.group_count}_{'_'.join(map(str, ranks))}"


def new_group(
    ranks=None,
    timeout: timedelta | None = None,
    backend=None,
    pg_options=None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id=None,
    sort_ranks: bool = True,
):
    """A group of some of the ranks. All ranks of the world call it, in one order.

    Args:
        ranks: global ranks; all by default.
        timeout: of each collective; the default group's by default.
        backend: by default that of the default group.
        pg_options: what the backend takes.
        use_local_synchronization: only the members call it.
        group_desc: what the group is for.
        device_id: of no use on the CPU.
        sort_ranks: whether members are numbered by their global rank.

    Returns:
        The group; `GroupMember.NON_GROUP_MEMBER` at ranks outside of it.

    Raises:
        ValueError: a rank that does not exist, or is named twice.
    """
    return _new_group(
        ranks,
        timeout,
        backend,
        pg_options,
        "",
        use_local_synchronization,
        group_desc,
        sort_ranks,
    )


def _new_group(
    ranks, timeout, backend, options, tag, local=False, desc=None, sort=True
):
    default = _get_default_group()
    default_backend, store = _world.pg_map[default]
    size = default.size()
    chosen = list(range(size)) if ranks is None else [int(r) for r in ranks]
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    for r in chosen:
        if not 0 <= r < size:
            raise ValueError(
                f"Rank {r} is out of range. Valid ranks are 0 to {size - 1} "
                f"(world_size={size})"
            )
    if sort:
        chosen.sort()
    name = _group_name(chosen)
    limit = _checked_timeout(timeout) if timeout is not None else _limit_of(default)
    rank = default.rank()
    if rank not in chosen:
        _world.group_count += 1
        return GroupMember.NON_GROUP_MEMBER
    if local:
        # Others do not count these groups: the name is of the members alone.
        name = f"local_{name.partition('_')[2]}_{_local_count(chosen)}"
        _world.group_count -= 1
    return _make_group(
        chosen,
        chosen.index(rank),
        backend or default_backend,
        store,
        name,
        limit,
        desc or "undefined",
        options,
        tag,
    )


def _local_count(ranks: list[int]) -> int:
    return sum(list(found) == ranks for found in _world.pg_group_ranks.values())


def _limit_of(pg: ProcessGroup) -> timedelta:
    for backend in pg._backends.values():
        native = getattr(backend, "_native", None)
        if native is not None:
            return native.timeout
        if isinstance(getattr(backend, "_timeout", None), timedelta):
            return backend._timeout
    return default_pg_timeout


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leaves a group, or all of them.

    Args:
        group: by default the default group, and with it all others.
    """
    if _not_in_group(group):
        return
    pg = _world.default_pg if group is None else group
    assert pg is not None, "Process group cannot be None"
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    leaving = list(_world.pg_map) if pg is _world.default_pg else [pg]
    if pg is _world.default_pg:
        _unwatch()
    for each in reversed(leaving):
        _leave(each)
    if pg is _world.default_pg:
        _world.__init__()  # type: ignore[misc]


def _unwatch() -> None:
    flight = sys.modules.get("taeda.distributed._flight")
    if flight is not None:
        flight.end()


def abort_process_group(group: ProcessGroup | None = None) -> None:
    """Ends what runs in a group with an error, and leaves it."""
    pg = group or _get_default_group()
    if pg not in _world.pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    for each in list(_world.pg_map) if pg is _world.default_pg else [pg]:
        each.abort()
    destroy_process_group(group)


_abort_process_group = abort_process_group
