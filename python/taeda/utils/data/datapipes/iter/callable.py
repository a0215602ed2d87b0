"""Functions of samples."""

from __future__ import annotations

import copy

from taeda.utils.data._utils.collate import default_collate

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import check_function, length_of, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A function of each sample, or of some of its columns (functional: `map`).

    Args:
        datapipe: the source.
        fn: a function.
        input_col: index or key of its argument, several of them, or None for all.
        output_col: where the result goes: -1 for a column at the end; None for the
            place of the (first) input column, of which the others are removed.

    Raises:
        ValueError: columns that do not fit the function or one another.

    Example:
        >>> list(IterableWrapper([(1, 2), (3, 4)]).map(abs, input_col=1, output_col=-1))
        [(1, 2, 2), (3, 4, 4)]
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None) -> None:
        check_function(fn)
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            (output_col,) = output_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        validate_input_col(fn, input_col)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def __iter__(self):
        for sample in self.datapipe:
            yield self._apply_fn(sample)

    def _apply_fn(self, sample):
        if self.input_col is None:
            return self.fn(sample)
        several = isinstance(self.input_col, (list, tuple))
        columns = self.input_col if several else (self.input_col,)
        result = self.fn(*(sample[column] for column in columns))
        # A list or dictionary may be the source's own: the change goes to a copy.
        named = list if isinstance(sample, tuple) else copy.copy
        changed = named(sample)
        if self.output_col is None:
            changed[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del changed[column]
        elif self.output_col == -1:
            changed.append(result)
        else:
            changed[self.output_col] = result
        return tuple(changed) if isinstance(sample, tuple) else changed

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of samples as tensors (functional: `collate`).

    Args:
        datapipe: a pipe of batches.
        conversion, collate_fn: the function of a batch, under its new and its old
            name; the old one counts where both are given.

    Raises:
        NotImplementedError: `conversion` as a dictionary, which is for data frames.

    Example:
        >>> list(IterableWrapper([1, 2]).batch(2).collate())
        [tensor([1, 2])]
    """

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None) -> None:
        function = conversion if collate_fn is None else collate_fn
        if isinstance(function, dict):
            raise NotImplementedError(
                "Collator: conversion by columns is not implemented; there are no "
                "pipes of data frames"
            )
        super().__init__(datapipe, function)
