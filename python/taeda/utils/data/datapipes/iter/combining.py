"""Several sources as one."""

from __future__ import annotations

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["ConcaterIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


class _Several(IterDataPipe):
    def __init__(self, *datapipes) -> None:
        self.datapipes = datapipes

    def _lengths(self) -> list[int]:
        return [length_of(self, pipe) for pipe in self.datapipes]


def _need_pipes(datapipes) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Several):
    """One pipe after the other (functional: `concat`).

    Example:
        >>> list(IterableWrapper([1]).concat(IterableWrapper([2])))
        [1, 2]
    """

    def __init__(self, *datapipes: IterDataPipe) -> None:
        _need_pipes(datapipes)
        super().__init__(*datapipes)

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(self._lengths())


@functional_datapipe("zip")
class ZipperIterDataPipe(_Several):
    """Tuples of a sample of each, until the shortest ends (functional: `zip`).

    Example:
        >>> list(IterableWrapper([1, 2]).zip(IterableWrapper("ab")))
        [(1, 'a'), (2, 'b')]
    """

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `Zipper`")
        super().__init__(*datapipes)

    def __iter__(self):
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(self._lengths())


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Several):
    """A sample of each in turn, in whole rounds, until the shortest ends (`mux`).

    Example:
        >>> list(IterableWrapper([1, 2]).mux(IterableWrapper("ab")))
        [1, 'a', 2, 'b']
    """

    def __iter__(self):
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(self._lengths()) * len(self.datapipes)
