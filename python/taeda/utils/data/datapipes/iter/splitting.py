"""One source, read by several."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, check_function

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]


class _Round:
    """One pass of all children over the source: who takes part, and what waits."""

    def __init__(self, count: int) -> None:
        self.source = None
        self.joined: set[int] = set()
        self.ended: set[int] = set()
        self.waiting: list[deque] = [deque() for _ in range(count)]


class _Splitter(IterDataPipe):
    """Hands the samples of a pipe to its children.

    A child that begins a second pass begins a new round, which ends the iterators of
    all others. Objects of this kind are for one thread at a time.
    """

    name: str
    overfull: str

    def __init__(self, datapipe, num_instances: int, buffer_size: int) -> None:
        if num_instances < 1:
            raise ValueError(
                f"Expected `num_instances` larger than 0, but {num_instances} is found"
            )
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{self.name}`: it may take all "
                "memory when one child is read far ahead of another.",
                stacklevel=4,
            )
        self.main_datapipe, self.num_instances = datapipe, num_instances
        self.buffer_size = buffer_size
        self._round = _Round(num_instances)

    def children(self) -> list:
        """The pipes to read from."""
        return [_ChildDataPipe(self, i) for i in range(self.num_instances)]

    def join(self, child: int) -> _Round:
        """The round in which a child's new iterator takes part."""
        if child in self._round.joined:
            if len(self._round.ended) < self.num_instances:
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. "
                    "All of them will read from the start again.",
                    stacklevel=6,
                )
            self.reset()
        self._round.joined.add(child)
        return self._round

    def reset(self) -> None:
        """Begin a new round; streams that nobody has read are closed."""
        for waiting in self._round.waiting:
            StreamWrapper.close_streams(list(waiting))
        self._round = _Round(self.num_instances)

    def read(self, child: int):
        """The samples of one child in the present round."""
        now = self._round
        if now.source is None:
            now.source = iter(self.main_datapipe)
        mine = now.waiting[child]
        while True:
            while not mine:
                try:
                    sample = next(now.source)
                except StopIteration:
                    now.ended.add(child)
                    return
                self._hand_out(sample, now.waiting)
                self._check_room(now.waiting, mine)
            yield mine.popleft()

    def _check_room(self, waiting, mine) -> None:
        held = self._held([len(w) for w in waiting if w is not mine] or [0])
        if 0 <= self.buffer_size < held:
            raise BufferError(
                f"{self.overfull} buffer overflow, buffer size {self.buffer_size} is "
                "insufficient."
            )

    def __getstate__(self):
        state = super().__getstate__()
        if isinstance(state, dict):
            state = state | {"_round": _Round(self.num_instances)}
        return state


class _ChildDataPipe(IterDataPipe):
    """One reader of a source that is split."""

    def __init__(self, main_datapipe: _Splitter, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def _claim(self):
        return self.main_datapipe.join(self.instance_id)

    def _holds(self, claim) -> bool:
        return claim is self.main_datapipe._round

    def __iter__(self):
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe)


_COPIES = {None: None, "shallow": copying.copy, "deep": copying.deepcopy}


class _Forker(_Splitter):
    name, overfull = "fork", "ForkerIterDataPipe"
    _held = staticmethod(max)  # what one child is behind is held once for all

    def __init__(self, datapipe, num_instances, buffer_size, copy) -> None:
        if copy not in _COPIES:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, "
                "`shallow` or `deep`."
            )
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy = copy

    def _hand_out(self, sample, waiting) -> None:
        copied = _COPIES[self.copy]
        for child in waiting:
            child.append(copied(sample) if copied else sample)

    def __len__(self) -> int:
        return len(self.main_datapipe)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of pipes, each of which gives all samples (functional: `fork`).

    Args:
        datapipe: the source, which is read once.
        num_instances: how many; for one the source itself is returned.
        buffer_size: samples that one may be ahead of another; -1 for any number.
        copy: give each its own "shallow" or "deep" copies; None for the same objects.

    Raises:
        ValueError: num_instances below 1, an unknown copy.
        BufferError: on iterating: the buffer is full.

    Example:
        >>> left, right = IterableWrapper(range(3)).fork(2)
        >>> list(left), list(right)
        ([0, 1, 2], [0, 1, 2])
    """

    def __new__(
        cls,
        datapipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ):
        if num_instances == 1:
            return datapipe
        return _Forker(datapipe, num_instances, buffer_size, copy).children()


class _Demultiplexer(_Splitter):
    name, overfull = "demux", "DemultiplexerIterDataPipe"
    _held = staticmethod(sum)

    def __init__(
        self, datapipe, num_instances, classifier_fn, drop_none, buffer_size
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _hand_out(self, sample, waiting) -> None:
        child = self.classifier_fn(sample)
        if child is None and self.drop_none:
            StreamWrapper.close_streams(sample)
            return
        if child is None or not 0 <= child < len(waiting):
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{len(waiting) - 1}. {child} is returned."
            )
        waiting[child].append(sample)

    def __len__(self) -> int:
        raise TypeError("demux: the number of samples of each class is not known")


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of pipes, each of which gives the samples of one class (`demux`).

    Args:
        datapipe: the source, which is read once.
        num_instances: how many classes.
        classifier_fn: the class of a sample, from 0.
        drop_none: leave out samples of class None, in place of an error.
        buffer_size: samples that may wait in all; -1 for any number.

    Raises:
        ValueError: num_instances below 1; on iterating, a class out of range.
        BufferError: on iterating: the buffer is full.

    Example:
        >>> even, odd = IterableWrapper(range(4)).demux(2, lambda x: x % 2)
        >>> list(even), list(odd)
        ([0, 2], [1, 3])
    """

    def __new__(
        cls,
        datapipe,
        num_instances: int,
        classifier_fn,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ):
        check_function(classifier_fn)
        return _Demultiplexer(
            datapipe, num_instances, classifier_fn, drop_none, buffer_size
        ).children()
