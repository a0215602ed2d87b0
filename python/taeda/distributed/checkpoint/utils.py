"""Steps that ranks take together, and what is done with every tensor of a state."""

from __future__ import annotations

import functools
import io
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import taeda
import taeda.distributed as dist

from .api import CheckpointException, Failure

__all__ = ["FileView", "Team", "map_tensors"]


class Team:
    """The ranks of one save or load, one of which coordinates.

    An exception at any rank becomes a CheckpointException at every one.

    Args:
        group: the ranks; all by default. alone (bool): there is only this one.
        coordinator_rank (int): within the group.
    """

    def __init__(self, group, alone: bool, coordinator_rank: int = 0) -> None:
        self.group, self.alone = group, alone
        self.rank, self.size, self.root = 0, 1, 0
        self.is_coordinator = True
        if not alone:
            self.rank = dist.get_rank(group)
            self.size = dist.get_world_size(group)
            self.is_coordinator = self.rank == coordinator_rank
            self.root = coordinator_rank
            if group is not None:
                self.root = dist.get_global_rank(group, coordinator_rank)

    def plan(self, step: str, local: Callable, decide: Callable) -> Any:
        """What `decide`, given each rank's `local()`, answers this rank."""
        answers = self._decision(step, local, decide)
        if self.alone:
            return _raised(answers if _failed(answers) else answers[0])
        if _failed(answers):
            answers = [answers] * self.size
        mine = [None]
        dist.scatter_object_list(mine, answers, src=self.root, group=self.group)
        return _raised(mine[0])

    def agree(self, step: str, local: Callable, decide: Callable) -> Any:
        """What `decide`, given each rank's `local()`, answers all ranks."""
        answer = [self._decision(step, local, decide)]
        if not self.alone:
            dist.broadcast_object_list(answer, src=self.root, group=self.group)
        return _raised(answer[0])

    def all(self, step: str, local: Callable) -> list:
        """Each rank's `local()`."""
        mine = _tried(local)
        found = [mine]
        if not self.alone:
            found = [None] * self.size
            dist.all_gather_object(found, mine, group=self.group)
        return _raised(_joined(step, found))

    def _decision(self, step: str, local: Callable, decide: Callable) -> Any:
        """At the coordinator: what `decide` answers, or the exception of a rank."""
        mine = _tried(local)
        found = [mine]
        if not self.alone:
            found = [None] * self.size if self.is_coordinator else None
            dist.gather_object(mine, found, dst=self.root, group=self.group)
        if not self.is_coordinator:
            return None
        found = _joined(step, found)
        if _failed(found):
            return found
        answer = _tried(lambda: decide(found))
        if isinstance(answer, Failure):
            return CheckpointException(step, {self.rank: answer.pair()})
        return answer

    def barrier(self) -> None:
        """Waits for all ranks."""
        if not self.alone:
            dist.barrier(self.group)


def _tried(function: Callable) -> Any:
    """What a function returns, or its Failure."""
    try:
        return function()
    except BaseException as error:
        return Failure(error)


def _joined(step: str, found: list) -> Any:
    """The values, or the exception that tells which ranks failed."""
    wrong = {r: v.pair() for r, v in enumerate(found) if isinstance(v, Failure)}
    return CheckpointException(step, wrong) if wrong else found


def _failed(value: Any) -> bool:
    return isinstance(value, CheckpointException)


def _raised(value: Any) -> Any:
    """The value; an exception is raised."""
    if _failed(value):
        raise value
    return value


def is_alone(no_dist: bool, what: str) -> bool:
    """Is this a matter of this process only? Warns if so."""
    alone = no_dist or not (dist.is_available() and dist.is_initialized())
    if alone:
        warnings.warn(
            f"no process group is used: {what} in this process alone", stacklevel=3
        )
    return alone


def old_order(storage: str) -> Callable:
    """A decorator: a second positional argument is the storage, as it once was."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if args:
                if len(args) > 1 or storage in kwargs:
                    raise TypeError(
                        f"{function.__name__}() takes 1 positional argument but "
                        f"{1 + len(args)} were given"
                    )
                warnings.warn(
                    f"{function.__name__}: give {storage} by its name", stacklevel=2
                )
                kwargs[storage] = args[0]
            return function(state_dict, **kwargs)

        return call

    return decorate


def default_device() -> taeda.device:
    """Where tensors of this process live: the GPU of an accelerator group, or CPU."""
    if dist.is_initialized() and "gloo" not in dist.get_backend_config():
        return taeda.device("cuda", taeda.cuda.current_device())
    return taeda.device("cpu")


def map_tensors(
    value: Any,
    function: Callable,
    other: Callable | None = None,
    in_place: bool = False,
) -> Any:
    """Applies functions to the leaves of nested dictionaries, lists and tuples.

    Args:
        function: of tensors. other: of what is no tensor, which is left by default.
        in_place (bool): dictionaries and lists are changed and not made anew.
    """

    def go(item: Any) -> Any:
        return map_tensors(item, function, other, in_place)

    if isinstance(value, taeda.Tensor):
        return function(value)
    if isinstance(value, Mapping):
        found = {key: go(item) for key, item in value.items()}
        if in_place:
            value.update(found)
            return value
        return found
    if isinstance(value, list):
        found = [go(item) for item in value]
        if in_place:
            value[:] = found
            return value
        return found
    if type(value) is tuple:
        return tuple(go(item) for item in value)
    return other(value) if other is not None else value


class FileView(io.RawIOBase):
    """A part of an open file, as a file.

    Args:
        file: with `seek` and `read`. offset, length (int): in bytes.
    """

    def __init__(self, file, offset: int, length: int) -> None:
        super().__init__()
        self.file, self.offset, self.length, self.at = file, offset, length, 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.at, os.SEEK_END: self.length}
        self.at = max(0, base[whence] + offset)
        return self.at

    def tell(self) -> int:
        return self.at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target) -> int:
        """Reads into a buffer, up to the end of this part; how many bytes."""
        count = min(len(target), max(0, self.length - self.at))
        self.file.seek(self.offset + self.at)
        view = memoryview(target)[:count]
        if hasattr(self.file, "readinto"):
            got = self.file.readinto(view)
        else:
            data = self.file.read(count)
            got = len(data)
            view[:got] = data
        self.at += got
        return got
