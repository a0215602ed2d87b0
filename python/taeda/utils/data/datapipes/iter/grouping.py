"""Putting samples together and taking them apart."""

from __future__ import annotations

from itertools import islice

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import check_function, length_of

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Chunks of a few samples each (functional: `batch`).

    Args:
        datapipe: the source.
        batch_size: samples in a chunk. drop_last: leave out a short last one.
        wrapper_class: what a chunk is made of a list with.

    Example:
        >>> list(IterableWrapper(range(5)).batch(2, drop_last=True))
        [[0, 1], [2, 3]]
    """

    def __init__(
        self,
        datapipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class=DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self):
        samples = iter(self.datapipe)
        while batch := list(islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of chunks, one after the other (functional: `unbatch`).

    Args:
        datapipe: the source.
        unbatch_level: how many levels of lists to take away; -1 takes all.

    Raises:
        ValueError, IndexError: on iterating: a level below -1, or more than there are.

    Example:
        >>> list(IterableWrapper([[0, [1]], [2]]).unbatch())
        [0, [1], 2]
    """

    def __init__(self, datapipe, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element, level: int):
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        nested = isinstance(element, (list, DataChunk))
        if level == 0 or (level == -1 and not nested):
            yield element
        elif nested:
            for inner in element:
                yield from self._dive(inner, max(level - 1, -1))
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Chunks of samples of equal key (functional: `groupby`).

    Args:
        datapipe: the source.
        group_key_fn: the key of a sample.
        keep_key: give (key, chunk).
        buffer_size: samples that may wait; the largest group leaves when it is full.
        group_size: a group of so many leaves at once.
        guaranteed_group_size: the least size of one that leaves a full buffer.
        drop_remaining: lose smaller ones then, in place of an error.

    Raises:
        AssertionError: sizes that exclude each other.
        RuntimeError: on iterating: the buffer is full of groups that are too small.

    Example:
        >>> list(IterableWrapper(["a1", "b1", "a2"]).groupby(lambda name: name[0]))
        [['a1', 'a2'], ['b1']]
    """

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        keep_key: bool = False,
        drop_remaining: bool = False,
        buffer_size: int = 10000,
    ) -> None:
        check_function(group_key_fn)
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
        least = guaranteed_group_size
        if least is not None and not 0 < least <= (group_size or 0):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size, which must be set"
            )
        self.datapipe, self.group_key_fn = datapipe, group_key_fn
        self.keep_key, self.max_buffer_size = keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed_group_size = group_size if least is None else least

    def _out(self, key, samples):
        chunk = DataChunk(samples)
        return (key, chunk) if self.keep_key else chunk

    def __iter__(self):
        groups: dict = {}
        waiting = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            group = groups.setdefault(key, [])
            group.append(sample)
            waiting += 1
            if len(group) == self.group_size:
                waiting -= len(group)
                yield self._out(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(largest)
                waiting -= len(group)
                if len(group) >= (self.guaranteed_group_size or 0):
                    yield self._out(largest, group)
                elif not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
        for key, group in groups.items():
            yield self._out(key, group)
