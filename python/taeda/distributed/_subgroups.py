"""Groups within the world: equal parts, given lists, splits and what is left."""

from __future__ import annotations

from ._join import (
    _get_default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    new_group,
)

__all__ = [
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "shrink_group",
    "split_group",
]


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


def shrink_group(ranks_to_exclude, group=None, shrink_flags: int = 0, pg_options=None):
    """A group of the ranks that are left; only they call it.

    Args:
        ranks_to_exclude: global ranks that are lost or not wanted.
        group: the default group by default, which is replaced then.
        shrink_flags: 1 ends what runs in the group with an error.
        pg_options: what the backend takes.

    Returns:
        The new group.

    Raises:
        TypeError: the backend cannot lose ranks.
        ValueError: this rank is to be excluded.
    """
    from ._world import _world

    parent = group or _get_default_group()
    if not ranks_to_exclude:
        raise ValueError("ranks_to_exclude cannot be empty")
    if get_rank() in ranks_to_exclude:
        raise ValueError(f"Rank {get_rank()} cannot exclude itself")
    backend = _world.pg_map[parent][0]
    raise TypeError(
        f"Process group backend for '{backend}' does not support shrinking operations."
    )
