"""The loader: batches of a dataset, made here or in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from taeda.utils.data._utils.collate import default_collate, default_convert
from taeda.utils.data._utils.worker import get_worker_info
from taeda.utils.data.dataset import IterableDataset, is_pipe
from taeda.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

# What loaders of other libraries annotate their arguments with.
_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]

_FIXED = (
    "batch_size batch_sampler sampler drop_last dataset persistent_workers"
).split()


class _DatasetKind:
    """Names of the two kinds of dataset."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What makes batches of a dataset of that kind; `fetch(indices)` makes one."""
        from taeda.utils.data._utils.fetch import make_fetcher

        return make_fetcher(
            kind == _DatasetKind.Iterable,
            dataset,
            auto_collation,
            collate_fn,
            drop_last,
        )


class _Forever(Sampler):
    """Places for samples of an iterable dataset, which has no indices."""

    def __iter__(self):
        from itertools import repeat

        return repeat(None)


class DataLoader:
    """Batches of a dataset, in the order PyTorch gives for the same seed.

    Args:
        dataset (Dataset): indexed or iterable, or a pipe (`datapipes`).
        batch_size (int): samples in a batch; None for single samples.
        shuffle (bool): a random order each pass; turns shufflers of pipes on or off.
        sampler: indices, instead of `shuffle`. batch_sampler: lists of them.
        num_workers (int): processes that make batches; 0 makes them here.
        collate_fn: samples -> batch. drop_last (bool): leave out a short batch.
        pin_memory (bool): page-locked memory, where there is an accelerator.
        timeout (float): seconds to wait for a worker; 0 for ever.
        worker_init_fn: called with the worker's number at its start.
        multiprocessing_context: a context, or "fork", "spawn", "forkserver".
        generator (Generator): of orders and seeds.
        prefetch_factor (int): batches ahead per worker (2).
        persistent_workers (bool): keep the workers from pass to pass.
        in_order (bool): False takes batches as they get ready.

    Raises:
        ValueError: options that exclude each other or are out of range.
        RuntimeError: on iterating: a worker died, or the time is up.

    Example:
        >>> for x, y in DataLoader(dataset, batch_size=2):
        ...     print(x.shape)
        taeda.Size([2, 4])
        taeda.Size([1, 4])
    """

    _ready = False
    __class_getitem__ = classmethod(type(list[int]))

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler=None,
        batch_sampler=None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_numbers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers and prefetch_factor is None:
            prefetch_factor = 2
        if shuffle is not None and is_pipe(dataset):
            from taeda.utils.data.graph_settings import apply_shuffle_settings

            dataset, shuffle = apply_shuffle_settings(dataset, shuffle), None
        self.dataset, self.num_workers = dataset, num_workers
        self.prefetch_factor, self.timeout = prefetch_factor, timeout
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.in_order = worker_init_fn, in_order
        self.multiprocessing_context = multiprocessing_context
        self._iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = int(self._iterable)
        _check_order(
            self._iterable, batch_size, shuffle, sampler, batch_sampler, drop_last
        )
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._iterable:
                sampler = _Forever()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler, self.batch_sampler = sampler, batch_sampler
        self.generator = generator
        usual = default_convert if batch_sampler is None else default_collate
        self.collate_fn = usual if collate_fn is None else collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called = None
        self._iterator = None
        self._ready = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value) -> None:
        if self._ready and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is "
                "initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """How workers are started; None for the system's usual way."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context) -> None:
        if context is not None and not self.num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={self.num_workers}"
            )
        self._context = _as_context(context)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _get_iterator(self):
        from taeda.utils.data import _iterators

        if self.pin_memory and not _iterators._has_accelerator():
            import warnings

            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        if self.num_workers == 0:
            return _iterators.SingleProcessIterator(self)
        return _iterators.WorkersIterator(self)

    def __iter__(self):
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator.reset()
        return self._iterator

    def _forget(self, iterator) -> None:
        """An iterator has ended its workers; the next pass starts new ones."""
        if self._iterator is iterator:
            self._iterator = None

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        whole, rest = divmod(length, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more workers than processors to run them."""
        if not self.num_workers:
            return
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        count = count or os.cpu_count() or 1
        if self.num_workers > count:
            import warnings

            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes, but "
                f"there are {count} processors for them: excessive worker creation "
                "might get DataLoader running slow or even freeze.",
                stacklevel=3,
            )


def _check_numbers(num_workers, timeout, prefetch_factor, persistent) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if num_workers:
        return
    if prefetch_factor is not None:
        raise ValueError("prefetch_factor option needs num_workers > 0")
    if persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last):
    given = {"sampler": sampler, "batch_sampler": batch_sampler}
    given = {k: v for k, v in given.items() if v is not None}
    if iterable:
        given |= {"shuffle": shuffle} if shuffle else {}
        for name, value in given.items():
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )
    # (is it in charge of the order?, what it then excludes, how that is said)
    rules = [
        (sampler is not None, [shuffle], "sampler option is", "shuffle"),
        (
            batch_sampler is not None,
            [batch_size != 1, shuffle, sampler is not None, drop_last],
            "batch_sampler option is",
            "batch_size, shuffle, sampler, and drop_last",
        ),
        (
            batch_sampler is None and batch_size is None,
            [drop_last],
            "batch_size=None option disables auto-batching and is",
            "drop_last",
        ),
    ]
    for decides, excluded, option, names in rules:
        if decides and any(excluded):
            raise ValueError(f"{option} mutually exclusive with {names}")


def _as_context(context):
    if context is None:
        return None
    import multiprocessing
    from multiprocessing.context import BaseContext

    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        context = multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a "
            f"string specifying the start method, but got {context!r}"
        )
    return context


_ITERATORS = {
    "_BaseDataLoaderIter": "BaseIterator",
    "_SingleProcessDataLoaderIter": "SingleProcessIterator",
    "_MultiProcessingDataLoaderIter": "WorkersIterator",
}


def __getattr__(name: str):
    if name in _ITERATORS:
        from taeda.utils.data import _iterators

        return getattr(_iterators, _ITERATORS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
