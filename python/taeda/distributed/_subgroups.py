"""Groups within the world: equal parts, given lists, splits and what is left."""

from __future__ import annotations

from typing import Any

from ._join import (
    _enter,
    _get_default_group,
    _leave,
    _unwatch,
    _watch,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    new_group,
)
from ._process_group import ProcessGroup
from ._types import PrefixStore
from ._world import _world

__all__ = [
    "SHRINK_ABORT",
    "SHRINK_DEFAULT",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "shrink_group",
    "split_group",
]

# Flags of `shrink_group`.
SHRINK_DEFAULT, SHRINK_ABORT = 0, 1


def new_subgroups(
    group_size=None,
    group=None,
    timeout=None,
    backend=None,
    pg_options=None,
    group_desc=None,
):
    """Groups of neighbouring ranks.

    Args:
        group_size: ranks in each; those of a machine by default.
        group: whose ranks are divided; all by default.
        timeout: of each collective.
        backend: by default that of the default group.
        pg_options: what the backend takes.
        group_desc: what the groups are for.

    Returns:
        This rank's group, and a list of all.

    Raises:
        ValueError: the size does not divide the number of ranks.
    """
    if group_size is None:
        import os

        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", "0"))
        if group_size < 1:
            raise ValueError("Default group size only takes effect under a launcher")
    world = get_world_size(group)
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if world < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size "
            f"({world})"
        )
    if world % group_size != 0:
        raise ValueError(
            f"The world size ({world}) must be divisible by 'group_size={group_size}'"
        )
    ranks = get_process_group_ranks(group)
    lists = [ranks[i : i + group_size] for i in range(0, world, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list,
    timeout=None,
    backend=None,
    pg_options=None,
    group_desc=None,
):
    """Groups of given ranks.

    Args:
        ranks_per_subgroup_list: lists of global ranks, no rank in two.
        timeout: of each collective.
        backend: by default that of the default group.
        pg_options: what the backend takes.
        group_desc: what the groups are for.

    Returns:
        This rank's group (None outside of all), and a list of all.

    Raises:
        ValueError: a rank is in two lists, or there is none.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    found: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in found:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {found[rank]} and "
                    f"{ranks}"
                )
            found[rank] = ranks
    mine, every = None, []
    for ranks in ranks_per_subgroup_list:
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        every.append(made)
        if get_rank() in ranks:
            mine = made
    return mine, every


def split_group(
    parent_pg=None,
    split_ranks=None,
    timeout=None,
    pg_options=None,
    group_desc=None,
    backend=None,
):
    """Divides a group; all its ranks call it.

    Args:
        parent_pg: the default group by default.
        split_ranks: lists of ranks of that group.
        timeout: of each collective.
        pg_options: what the backend takes.
        group_desc: what the groups are for.
        backend: by default that of the parent.

    Returns:
        This rank's group, None where no list has it.

    Raises:
        ValueError: a rank is in two lists, or there is none.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = parent_pg or _get_default_group()
    members = get_process_group_ranks(parent)
    lists = [[members[r] for r in ranks] for ranks in split_ranks]
    return new_subgroups_by_enumeration(
        lists, timeout, backend, pg_options, group_desc
    )[0]


def shrink_group(
    ranks_to_exclude: list[int],
    group: ProcessGroup | None = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any | None = None,
) -> ProcessGroup:
    """A group of the ranks that are left, which go on without a restart.

    Those who are left call it, with the same arguments; the excluded do not. The old
    group is of no use afterwards. Ranks are numbered anew where the default group is
    shrunk, and all other groups end with it. The store has to live: where rank 0's
    process serves it, rank 0 cannot be lost.

    Args:
        ranks_to_exclude: ranks of `group` that are lost or not wanted.
        group: the default group by default, which the new one replaces.
        shrink_flags: `SHRINK_ABORT`, 1, ends what runs in the group with an error.
        pg_options: what the backend takes.

    Returns:
        The new group. `init_process_group`'s limit holds for its making.

    Raises:
        TypeError: the backend cannot lose ranks. "gloo" can where a collective of the
            group has failed, and with `SHRINK_ABORT`.
        ValueError: no such ranks, or none would be left.
        RuntimeError: this rank is to be excluded.
        DistBackendError, DistStoreError: others who are left do not come in time.

    Example:
        >>> dist = taeda.distributed
        >>> def summed(x, lost):
        ...     try:
        ...         dist.all_reduce(x)
        ...     except dist.DistBackendError:
        ...         dist.shrink_group(lost)  # whom the error names
        ...         dist.all_reduce(x)
        ...     return x
        >>> store = dist.HashStore()
        >>> dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> summed(taeda.ones(2), [2])
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    parent = group or _get_default_group()
    _check_excluded(ranks_to_exclude, shrink_flags)
    if parent.size() <= 1:
        raise ValueError(
            f"Cannot shrink a process group with size {parent.size()}: at least 2 "
            "ranks are needed"
        )
    backends = list(dict.fromkeys(parent._backends.values()))
    if not all(_shrinks(each, shrink_flags) for each in backends):
        raise TypeError(
            f"Process group backend for '{_world.pg_names.get(parent, 'None')}' does "
            "not support shrinking operations."
        )
    _check_ranks(ranks_to_exclude, parent)
    excluded = sorted(ranks_to_exclude)
    made = {b: b.shrink(excluded, shrink_flags, pg_options) for b in backends}
    kinds = {kind: made[b] for kind, b in parent._backends.items()}
    return _replace(parent, excluded, kinds)


def _check_excluded(ranks, flags: int) -> None:
    if not isinstance(ranks, list):
        raise TypeError(
            f"ranks_to_exclude must be a list, but got {type(ranks).__name__}"
        )
    if not ranks:
        raise ValueError("ranks_to_exclude cannot be empty: name at least one rank")
    if flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(
            f"Invalid shrink_flags value: {flags}. Must be SHRINK_DEFAULT "
            f"({SHRINK_DEFAULT}) or SHRINK_ABORT ({SHRINK_ABORT})"
        )


def _check_ranks(ranks: list[int], parent: ProcessGroup) -> None:
    size = parent.size()
    for i, rank in enumerate(ranks):
        if not isinstance(rank, int):
            raise TypeError(
                "All elements in ranks_to_exclude must be integers. Element at index "
                f"{i} is {type(rank).__name__}: {rank}"
            )
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} at index {i} is out of bounds for group size {size}"
            )
        if rank in ranks[:i]:
            raise ValueError(
                f"Duplicate rank {rank} found in ranks_to_exclude at index {i}"
            )
    if len(ranks) >= size:
        raise ValueError(f"Cannot exclude all {size} ranks from process group")
    if parent.rank() in ranks:
        raise RuntimeError(
            f"Current rank {parent.rank()} is in the exclusion list and should not "
            "call shrink_group(): only those who are left do"
        )


def _shrinks(backend, flags: int) -> bool:
    if flags == SHRINK_ABORT and getattr(backend, "shrinks_when_aborted", False):
        return True
    return bool(getattr(backend, "supports_shrinking", False))


def _replace(parent: ProcessGroup, excluded: list[int], backends) -> ProcessGroup:
    """Enters the new group in the world in the old one's place."""
    whole = parent is _world.default_pg
    shown, store = _world.pg_map[parent]
    config, tag = _world.pg_backend_config[parent], _world.pg_to_tag[parent]
    members = get_process_group_ranks(parent)
    left = [m for i, m in enumerate(members) if i not in excluded]
    name = f"{_world.pg_names[parent]}~{'_'.join(map(str, excluded))}"
    own = PrefixStore(f"{name}/", store)
    first = next(iter(backends.values()))
    made = ProcessGroup(own, first.rank(), first.size())
    for kind, backend in backends.items():
        made._register_backend(kind, None, backend)
    made._set_group_name(name)
    made._set_group_desc("default:shrunken" if whole else f"{parent.group_name}:shrunk")
    made.bound_device_id = parent.bound_device_id
    for each in list(_world.pg_map) if whole else [parent]:
        if each is not parent:
            each.abort()
        _leave(each)
    _enter(made, range(len(left)) if whole else left, shown, own, config, tag)
    if whole:
        _world.default_pg = made
        _unwatch()
        _watch(made, own)
    return made
