"""From indices to a batch."""

from __future__ import annotations

from itertools import islice

from taeda.utils.data._utils import collate
from taeda.utils.data.dataset import TensorDataset


class MapFetcher:
    """Batches of an indexed dataset.

    Args:
        auto (bool): indices come in lists. collate_fn: samples -> batch.
    """

    def __init__(self, dataset, auto: bool, collate_fn, drop_last: bool) -> None:
        self.dataset, self.auto, self.collate_fn = dataset, auto, collate_fn
        self.ended = False
        kind = type(dataset)
        # Rows of tensors by one indexing per tensor: what collating would give.
        self.by_rows = (
            auto
            and collate_fn is collate.default_collate
            and isinstance(dataset, TensorDataset)
            and kind.__getitem__ is TensorDataset.__getitem__
            and not hasattr(kind, "__getitems__")
        )

    def __call__(self, indices):
        if not self.auto:
            return self.collate_fn(self.dataset[indices])
        if self.by_rows and set(map(type, indices)) == {int}:
            return self.dataset._batch(indices)
        many = getattr(self.dataset, "__getitems__", None)
        if many:
            samples = many(indices)
        else:
            samples = [self.dataset[index] for index in indices]
        return self.collate_fn(samples)


class IterableFetcher:
    """Batches of an iterable dataset; StopIteration at its end."""

    def __init__(self, dataset, auto: bool, collate_fn, drop_last: bool) -> None:
        self.auto, self.collate_fn, self.drop_last = auto, collate_fn, drop_last
        self.samples = iter(dataset)
        self.ended = False

    def __call__(self, indices):
        if self.ended:
            raise StopIteration
        if not self.auto:
            return self.collate_fn(next(self.samples))
        batch = list(islice(self.samples, len(indices)))
        self.ended = len(batch) < len(indices)
        if not batch or (self.drop_last and self.ended):
            raise StopIteration
        return self.collate_fn(batch)


# PyTorch's name of the call.
MapFetcher.fetch, IterableFetcher.fetch = MapFetcher.__call__, IterableFetcher.__call__


def make_fetcher(iterable: bool, dataset, auto: bool, collate_fn, drop_last: bool):
    """The fetcher for a kind of dataset."""
    kind = IterableFetcher if iterable else MapFetcher
    return kind(dataset, auto, collate_fn, drop_last)
