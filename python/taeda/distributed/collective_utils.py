"""Objects of all ranks at once; where one rank fails, all do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import taeda.distributed as dist

__all__ = [
    "SyncPayload",
    "all_gather",
    "all_gather_object_enforce_type",
    "broadcast",
]


@dataclasses.dataclass
class SyncPayload:
    """What a rank gives the others, or why it has nothing to give."""

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None


def _made(data_or_fn, stage_name: str | None, success: bool = True) -> SyncPayload:
    """This rank's part, from the data or the function that computes it."""
    made = SyncPayload(stage_name, success, data_or_fn)
    if callable(data_or_fn):
        try:
            made.payload = data_or_fn()
        except Exception as error:
            made = SyncPayload(stage_name, False, None, error)
    return made


def _text(where: str, stage_name: str | None, rank: int) -> str:
    stage = f" at stage {stage_name}" if stage_name is not None else ""
    return f"{where}: rank {rank} failed{stage}"


def broadcast(
    data_or_fn,
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg=None,
):
    """One rank's data at all ranks.

    Args:
        data_or_fn: the data; or a function, which the one rank calls.
        success: False makes all ranks fail.
        stage_name: said in errors.
        rank: whose data it is, a rank of the group.
        pg: the group; without one, the data stays here.

    Raises:
        RuntimeError: the rank failed; its exception is the cause.

    Example:
        >>> taeda.distributed.collective_utils.broadcast(lambda: 3)
        3
    """
    if not success and data_or_fn is not None:
        raise AssertionError("broadcast: there is data although success is False")
    payload = None
    if (pg.rank() if pg is not None else 0) == rank:
        payload = _made(data_or_fn, stage_name, success)
    if pg is not None:
        shared = [payload]
        dist.broadcast_object_list(shared, dist.get_global_rank(pg, rank), pg)
        payload = shared[0]
    elif payload is None:
        return None
    if not payload.success:
        raise RuntimeError(
            _text("broadcast", stage_name, rank)
            + (f": {payload.exception}" if payload.exception else "")
        ) from payload.exception
    return payload.payload


def all_gather(data_or_fn, stage_name: str | None = None, pg=None) -> list:
    """All ranks' data at all ranks.

    Args:
        data_or_fn: the data; or a function, which each rank calls.
        stage_name: the ranks have to agree on it.
        pg: the group; without one, it is this rank alone.

    Returns:
        The data by rank.

    Raises:
        RuntimeError: ranks failed, or are at different stages.

    Example:
        >>> taeda.distributed.collective_utils.all_gather(lambda: 3)
        [3]
    """
    made = [_made(data_or_fn, stage_name)]
    if pg is not None:
        mine, made = made[0], [None] * dist.get_world_size(pg)
        all_gather_object_enforce_type(pg, made, mine)
    for rank, each in enumerate(made):
        if each.stage_name != stage_name:
            raise RuntimeError(
                f"all_gather: rank {rank} is at stage {each.stage_name}, not at "
                f"{stage_name}"
            )
        if not each.success:
            raise RuntimeError(
                f"{_text('all_gather', stage_name, rank)}: {each.exception}"
            ) from each.exception
    return [each.payload for each in made]


def _same_type(x, y) -> bool:
    return type(x) is type(y)


def all_gather_object_enforce_type(
    pg,
    object_list: list,
    obj,
    type_checker: Callable[[Any, Any], bool] = _same_type,
) -> None:
    """All ranks' objects at all ranks, which are checked against each other.

    Args:
        pg: the group; None is that of all ranks.
        object_list: as many entries as ranks; they are replaced.
        obj: this rank's object.
        type_checker: whether two objects fit; by default, have the same type.

    Raises:
        TypeError: two that follow each other do not fit.
    """
    dist.all_gather_object(object_list, obj, pg)
    for rank in range(len(object_list) - 1):
        first, second = object_list[rank : rank + 2]
        if not type_checker(first, second):
            raise TypeError(
                f"Object type at index {rank} is {type(first)}, while object type at "
                f"index {rank + 1} is {type(second)}"
            )
