"""The beginning of pipelines."""

from __future__ import annotations

import copy

from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The values of an iterable.

    Args:
        iterable: what can be iterated, more than once where the pipe is.
        deepcopy: give copies, so that later pipes may change them in place; left out
            for what cannot be copied, with a warning.

    Example:
        >>> list(IterableWrapper(range(3)))
        [0, 1, 2]
    """

    def __init__(self, iterable, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self):
        values = self.iterable
        if self.deepcopy:
            try:
                values = copy.deepcopy(values)
            except TypeError:
                import warnings

                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of "
                    "in-place modification would affect source data.",
                    stacklevel=2,
                )
        yield from values

    def __len__(self) -> int:
        return length_of(self, self.iterable)
