"""Leaving samples out."""

from __future__ import annotations

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import check_function, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples of which a function says True (functional: `filter`).

    Args:
        datapipe: the source.
        filter_fn: a function that returns a bool, or a tensor of one.
        input_col: as for `map`.

    Raises:
        ValueError: on iterating: the function returned something else.

    Example:
        >>> list(IterableWrapper([True, False, True]).filter(bool))
        [True, True]
    """

    def __init__(self, datapipe, filter_fn, input_col=None) -> None:
        check_function(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _kept(self, sample) -> bool:
        if self.input_col is None:
            answer = self.filter_fn(sample)
        elif isinstance(self.input_col, (list, tuple)):
            answer = self.filter_fn(*(sample[column] for column in self.input_col))
        else:
            answer = self.filter_fn(sample[self.input_col])
        if not isinstance(answer, bool):
            raise ValueError(
                "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                type(answer),
            )
        return answer

    def __iter__(self):
        for sample in self.datapipe:
            if self._kept(sample):
                yield sample
