"""The pipes of samples by index or key."""

from __future__ import annotations

import copy

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe, MapDataPipe
from ..iter.combinatorics import Seeded
from ..utils.common import check_function

__all__ = [
    "BatcherMapDataPipe",
    "ConcaterMapDataPipe",
    "MapperMapDataPipe",
    "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe",
    "ZipperMapDataPipe",
    "same",
]


def same(sample):
    """The sample itself."""
    return sample


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The values of a list, a dictionary or the like.

    Args:
        sequence: the values.
        deepcopy: keep a copy, where one can be made; a warning tells where not.

    Example:
        >>> SequenceWrapper({"a": 1})["a"]
        1
    """

    def __init__(self, sequence, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                import warnings

                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of "
                    "in-place modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """A function of each sample (functional: `map`).

    Args:
        datapipe: the source.
        fn: the function; by default the samples stay as they are.
    """

    def __init__(self, datapipe, fn=same) -> None:
        check_function(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


class ShufflerIterDataPipe(Seeded, IterDataPipe):
    """The samples in a random order, as a pipe to be read (functional: `shuffle`).

    The order is PyTorch's for the same seed.

    Args:
        datapipe: the source.
        indices: its indices or keys; by default 0, 1, ...
    """

    def __init__(self, datapipe, *, indices: list | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled_indices = self.indices
        self._settle()

    def reset(self) -> None:
        if self._enabled:
            self._sow()
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self):
        # The drawn order is taken from its end, and gone afterwards.
        order = reversed(self._shuffled_indices) if self._enabled else self.indices
        for index in order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Chunks of samples of successive indices (functional: `batch`).

    Args:
        datapipe: the source, with indices from 0.
        batch_size: samples in a chunk. drop_last: leave out a short last one.
        wrapper_class: what a chunk is made of a list with.
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
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index):
        begin = index * self.batch_size
        end = min(begin + self.batch_size, len(self.datapipe))
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        return self.wrapper_class([self.datapipe[i] for i in range(begin, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


class _Several(MapDataPipe):
    def __init__(self, *datapipes) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        if not all(hasattr(pipe, "__len__") for pipe in datapipes):
            raise TypeError("Expected all inputs to be `Sized`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Several):
    """One pipe after the other, by index from 0 (functional: `concat`).

    Example:
        >>> SequenceWrapper([1]).concat(SequenceWrapper([2]))[1]
        2
    """

    def __init__(self, *datapipes: MapDataPipe) -> None:
        super().__init__(*datapipes)

    def __getitem__(self, index):
        rest = index
        for pipe in self.datapipes:
            if rest < len(pipe):
                return pipe[rest]
            rest -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(_Several):
    """Tuples of a sample of each (functional: `zip`).

    Example:
        >>> SequenceWrapper([1, 2]).zip(SequenceWrapper("ab"))[1]
        (2, 'b')
    """

    def __init__(self, *datapipes: MapDataPipe) -> None:
        super().__init__(*datapipes)

    def __getitem__(self, index):
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes "
                    f"{pipe}."
                ) from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
