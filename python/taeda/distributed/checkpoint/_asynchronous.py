"""Saves that go on beside the training: in a thread, or in a process for each rank."""

from __future__ import annotations

import warnings
from concurrent.futures import Future
from threading import Thread
from typing import Any

import taeda.distributed as dist

from .api import CheckpointException

__all__ = ["group_for", "in_process", "in_thread", "without_value"]

_GROUP = "_checkpoint_group"


def group_for(process_group, no_dist: bool):
    """A group of the same ranks that only checkpoints use, made once; None alone.

    Collectives of a thread in the training's own group would come in another order at
    each rank. All ranks of `process_group` call this.
    """
    if no_dist or not (dist.is_available() and dist.is_initialized()):
        return None
    parent = process_group or dist.group.WORLD
    made = getattr(parent, _GROUP, None)
    if made is None:
        ranks = dist.get_process_group_ranks(parent)
        alone = process_group is not None
        made = dist.new_group(ranks, backend="gloo", use_local_synchronization=alone)
        setattr(parent, _GROUP, made)
    return made


def in_thread(staged: Any, group, options: dict) -> Future:
    """A Future of the Metadata; the save runs in a thread of its own."""
    done: Future = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        from .state_dict_saver import save

        try:
            state = staged.result() if isinstance(staged, Future) else staged
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done.set_result(save(state, process_group=group, **options))
        except BaseException as error:
            done.set_exception(error)

    # Not a daemon: the interpreter waits for a checkpoint that is being written.
    Thread(target=run, name="checkpoint-save").start()
    return done


def without_value(future: Future) -> Future:
    """A Future of None that is done, or fails, with another."""
    done: Future = Future()

    def follow(finished: Future) -> None:
        error = finished.exception()
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    future.add_done_callback(follow)
    return done


def in_process(staged: Any, group, options: dict) -> Future:
    """As `in_thread`, with the work done by a process beside each rank."""
    from ._helper import Helper

    helper = Helper.of(group)
    done: Future = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            state = staged.result() if isinstance(staged, Future) else staged
            found = helper.save(state, options)
            if isinstance(found, (Exception, CheckpointException)):
                done.set_exception(found)
            else:
                done.set_result(found)
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, name="checkpoint-send").start()
    return done
