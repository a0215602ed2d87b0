"""Loading: into the tensors of a state dict, whatever layout was saved."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any

from ._storage import find_storage
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .logger import step
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import LoadPlanner
from .stateful import Stateful
from .storage import StorageReader
from .utils import Team, is_alone, old_order

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_reader: StorageReader,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Deprecated name: `load`, without stateful objects."""
    warnings.warn(
        "load_state_dict of checkpoints is deprecated: use load instead",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    team = Team(process_group, no_dist, coordinator_rank)
    _load(state_dict, storage_reader, team, planner)


@old_order("storage_reader")
def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group=None,
    no_dist: bool = False,
) -> None:
    """Reads a checkpoint into a state dict.

    Tensors are filled in place, each rank reading what it has of them; all else is
    replaced. The checkpoint may have been written by any number of ranks with any
    layout, by PyTorch too. Objects are read as data: nothing of the file is run.

    Args:
        state_dict (dict): tensors, nested dictionaries, objects, and Stateful ones. All
            ranks give the same names.
        checkpoint_id: a folder, or what else the reader takes for a name.
        storage_reader: of files by default.
        planner: DefaultLoadPlanner by default.
        process_group: the ranks that load; all by default.
        no_dist (bool): this process loads alone, as without a process group.

    Raises:
        CheckpointException: a name is missing, a size differs, there is no checkpoint,
            at any of the ranks.

    On every rank:
        state = {"model": model.state_dict()}
        taeda.distributed.checkpoint.load(state, checkpoint_id="step100")
        model.load_state_dict(state["model"])
    """
    alone = is_alone(no_dist, "loading")
    reader = find_storage(storage_reader, checkpoint_id, reader=True)
    own = [k for k in sorted(state_dict) if isinstance(state_dict[k], Stateful)]
    plain = {
        key: state_dict[key].state_dict() if key in own else state_dict[key]
        for key in sorted(state_dict)
    }
    _load(plain, reader, Team(process_group, alone), planner)
    for key, value in plain.items():
        if key in own:
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _load(
    state_dict: STATE_DICT_TYPE,
    reader: StorageReader,
    team: Team,
    planner: LoadPlanner | None = None,
) -> None:
    """Fills a dictionary without stateful objects."""
    planner = planner or DefaultLoadPlanner()
    name = getattr(reader, "checkpoint_id", None)

    def local():
        with step("load: local plan", name):
            metadata, shared = _read_metadata(reader, team.rank)
            planner.set_up_planner(state_dict, metadata, team.is_coordinator)
            extra = {"rank": team.rank, "use_collectives": shared}
            set_up = reader.set_up_storage_reader
            set_up(metadata, team.is_coordinator, **_accepted(set_up, extra))
            return reader.prepare_local_plan(planner.create_local_plan())

    def together(plans):
        with step("load: global plan", name):
            return reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = team.plan("plan", local, together)

    def read():
        with step("load: read", name):
            reader.read_data(planner.finish_plan(plan), planner).wait()

    team.all("read", read)


def _accepted(function, extra: dict) -> dict:
    """The keywords, if the function takes any (older storages do not)."""
    parameters = inspect.signature(function).parameters.values()
    return extra if any(p.kind == p.VAR_KEYWORD for p in parameters) else {}


def _read_metadata(reader: StorageReader, rank: int) -> tuple[Metadata, bool]:
    """(the checkpoint's metadata, or this rank's own; whether they are the former)."""
    try:
        return reader.read_metadata(), True
    except Exception as error:
        if not _accepted(reader.read_metadata, {"rank": rank}):
            raise
        try:
            return reader.read_metadata(rank=rank), False
        except Exception as own:
            raise AssertionError(
                f"metadata is None: global metadata read failed: {error}; rank local "
                f"metadata read failed: {own}"
            ) from error


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    process_group=None,
) -> dict[str, Any]:
    """Entries of a checkpoint, whole, in a new dictionary.

    Args:
        keys: names; None means all. The others as of `load`.
    """
    alone = is_alone(False, "loading")
    reader = find_storage(storage_reader, checkpoint_id, reader=True)
    found: dict[str, Any] = {}
    wanted = {keys} if isinstance(keys, str) else keys
    planner = _EmptyStateDictLoadPlanner(keys=wanted or None)
    _load(found, reader, Team(process_group, alone), planner)
    return found
