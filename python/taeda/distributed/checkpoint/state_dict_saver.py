"""Saving: every rank writes what it has, and one makes the checkpoint valid."""

from __future__ import annotations

import inspect
import os
import warnings
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ._storage import find_storage
from .default_planner import DefaultSavePlanner
from .logger import step
from .metadata import STATE_DICT_TYPE, Metadata
from .planner import SavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .state_dict_loader import _accepted
from .stateful import Stateful
from .storage import StorageWriter
from .utils import Team, is_alone, old_order

__all__ = [
    "AsyncCheckpointerType",
    "AsyncSaveResponse",
    "async_save",
    "save",
    "save_state_dict",
]


class AsyncCheckpointerType(Enum):
    """What writes an asynchronous checkpoint."""

    THREAD = "thread"
    PROCESS = "process"


def save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Deprecated name: `save`, without stateful objects."""
    warnings.warn(
        "save_state_dict of checkpoints is deprecated: use save instead",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    team = Team(process_group, no_dist, coordinator_rank)
    return _save(state_dict, storage_writer, team, planner)


@old_order("storage_writer")
def save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group=None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Writes a checkpoint, which any number of ranks can load, PyTorch's too.

    Tensors that are spread over ranks are written by the ranks that have them; what
    all ranks have is written once. The checkpoint becomes valid in one step at the
    end: whoever is killed before leaves what was there.

    Args:
        state_dict (dict): tensors, nested dictionaries, objects, and Stateful ones,
            whose `state_dict()` is saved.
        checkpoint_id: a folder, or what else the writer takes for a name.
        storage_writer: of files by default.
        planner: DefaultSavePlanner by default.
        process_group: the ranks that save; all by default.
        no_dist (bool): this process saves alone, as without a process group.
        use_collectives (bool): False writes a description for each rank, without
            talking to the others; the same ranks must load it.

    Returns:
        Metadata: what has been written.

    Raises:
        CheckpointException: something failed at one of the ranks.

    On every rank:
        state = {"model": model.state_dict(), "step": 100}
        taeda.distributed.checkpoint.save(state, checkpoint_id="step100")
    """
    alone = is_alone(no_dist, "saving")
    writer = find_storage(storage_writer, checkpoint_id, reader=False)
    team = Team(process_group, alone)
    return _save(_plain(state_dict), writer, team, planner, use_collectives)


def _plain(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """The dictionary with the states of stateful objects in their place."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _save(
    state_dict: STATE_DICT_TYPE,
    writer: StorageWriter,
    team: Team,
    planner: SavePlanner | None = None,
    use_collectives: bool = True,
) -> Metadata:
    """Writes a dictionary without stateful objects."""
    planner = planner or DefaultSavePlanner()
    name = getattr(writer, "checkpoint_id", None)
    metadata: Metadata | None = None

    def local():
        with step("save: local plan", name):
            _set_up(planner, state_dict, writer, team.is_coordinator)
            extra = {"rank": team.rank, "use_collectives": use_collectives}
            set_up = writer.set_up_storage_writer
            set_up(team.is_coordinator, **_accepted(set_up, extra))
            return writer.prepare_local_plan(planner.create_local_plan())

    def together(plans):
        nonlocal metadata
        with step("save: global plan", name):
            plans, metadata = planner.create_global_plan(plans)
            return writer.prepare_global_plan(plans)

    def write():
        with step("save: write", name):
            return writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(results):
        with step("save: finish", name):
            writer.finish(metadata, results)
            return metadata

    if use_collectives:
        plan = team.plan("plan", local, together)
        return team.agree("write", write, finish)
    plan = together([local()])[0]
    found = finish([write()])
    team.barrier()
    return found


def _set_up(planner, state_dict, writer, is_coordinator: bool) -> None:
    set_up = planner.set_up_planner
    if "storage_meta" in inspect.signature(set_up).parameters:
        meta = writer.storage_meta()
        set_up(state_dict=state_dict, storage_meta=meta, is_coordinator=is_coordinator)
        return
    warnings.warn(
        f"{type(planner).__name__}.set_up_planner should take storage_meta",
        stacklevel=2,
    )
    set_up(state_dict, is_coordinator)


@dataclass
class AsyncSaveResponse:
    """What `async_save` returns if the stager copies in the background.

    Attributes:
        staging_completion (Future): done when the state may be changed again.
        upload_completion (Future): of the Metadata, done when all is written.
    """

    staging_completion: Future
    upload_completion: Future


def async_save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group=None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """Copies the state to the CPU and saves the copy while training goes on.

    The ranks of the save talk in a group of their own, so collectives of the training
    cannot get between. Arguments as of `save`, and:

    Args:
        async_checkpointer_type: a thread, or a process beside each rank.
        async_stager: makes the copy. By default the writer, if it is one.

    Returns:
        Future of the Metadata; AsyncSaveResponse if the stager returned a Future.

    On every rank:
        future = async_save(state, checkpoint_id="step100")
        train_on(); future.result()
    """
    from . import _asynchronous

    if async_stager is None and isinstance(storage_writer, AsyncStager):
        async_stager = storage_writer
    owned = async_stager is None
    stager: Any = async_stager or DefaultStager(
        StagingOptions(False, False, False, False)
    )
    team_of_save = _asynchronous.group_for(process_group, no_dist)
    try:
        staged = stager.stage(_plain(state_dict))
        options = {
            "checkpoint_id": checkpoint_id,
            "storage_writer": storage_writer,
            "planner": planner,
            "no_dist": no_dist,
            "use_collectives": use_collectives,
        }
        in_process = async_checkpointer_type is AsyncCheckpointerType.PROCESS
        start = _asynchronous.in_process if in_process else _asynchronous.in_thread
        upload = start(staged, team_of_save, options)
    except BaseException:
        if owned:
            stager.close()
        raise
    if owned:
        upload.add_done_callback(lambda _: stager.close())
    if isinstance(staged, Future):
        return AsyncSaveResponse(_asynchronous.without_value(staged), upload)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return upload
