"""Data sets and loaders: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
data.Dataset()[0]  # Subclasses of Dataset should implement __getitem__.
iter(data.IterableDataset())  # Can't instantiate abstract class IterableDataset with
data.StackDataset()  # At least one dataset should be passed
(d := made(data.Dataset, __getitem__=lambda s, i: i, __getitems__=lambda s, l: [], \
__len__=lambda s: 2)(), data.StackDataset(d).__getitems__([0]))\
  # Nested dataset's output size mismatch. Expected 1, got 0
data.ConcatDataset([])  # datasets should not be an empty iterable
list(data.ChainDataset([[1]]))  # ChainDataset only supports IterableDataset
data.distributed.DistributedSampler([1])  # Default process group has not been
iter(data.Sampler())  # Sampler does not define __iter__
data.WeightedRandomSampler([1], 1, replacement=1)  # value, but got replacement=1
data.DataLoader([1], num_workers=1, prefetch_factor=-1)\
  # prefetch_factor option should be non-negative
data.DataLoader([1], num_workers=1, multiprocessing_context=1)\
  # be a valid context object or a string specifying the start method, but got 1
pickle.dumps(iter(data.DataLoader([1])))  # SingleProcessIterator cannot be pickled
data._utils.nothing  # module 'taeda.utils.data._utils' has no attribute 'nothing'
data.TensorDataset(ones(2), ones(3))  # Size mismatch between tensors
data.StackDataset([1], a=[1])  # Supported either by position (for tuples) or by name
data.StackDataset([1], [1, 2])  # Size mismatch between datasets
data.ConcatDataset([made(data.IterableDataset, __iter__=lambda s: iter([]))()])\
  # ConcatDataset does not support IterableDataset
data.ConcatDataset([[1]])[-5]  # absolute value of index should not exceed dataset
data.random_split([1], [2.0])  # not equal the length of the input dataset! (2.0 and 1)
data.distributed.DistributedSampler([1], 2, 5)  # 5, rank should be in the interval [0,
data.RandomSampler([1], replacement=1)  # be a boolean value, but got replacement=1
data.RandomSampler([1], num_samples=0)  # positive integer value, but got num_samples=0
data.WeightedRandomSampler([[1]], 1)  # 1d sequence but given weights have shape (1, 1)
data.BatchSampler([1], 1, 1)  # drop_last should be a boolean value, but got drop_last=1
data.DataLoader([1], num_workers=-1)  # option should be non-negative; use num_workers=0
data.DataLoader([1], timeout=-1)  # timeout option should be non-negative
data.DataLoader([1], prefetch_factor=2)  # prefetch_factor option needs num_workers > 0
data.DataLoader([1], persistent_workers=True)  # option needs num_workers > 0
data.DataLoader([1], multiprocessing_context='fork')\
  # only be used with multi-process loading (num_workers > 0), but got num_workers=0
data.DataLoader([1], num_workers=1, multiprocessing_context='x')\
  # option should specify a valid start method in ['fork', 'spawn', 'forkserver'],
data.DataLoader([1], batch_sampler=[[0]], batch_size=2)\
  # batch_sampler option is mutually exclusive with batch_size, shuffle, sampler,
data.DataLoader([1], sampler=[0], shuffle=True)  # sampler option is mutually exclusive
data.DataLoader([1], batch_size=None, drop_last=True)\
  # batch_size=None option disables auto-batching and is mutually exclusive with
setattr(data.DataLoader([1]), 'batch_size', 2)  # batch_size attribute should not be set
data.default_collate([object()])  # numbers, dicts or lists; found <class 'object'>
data.default_collate([[1], [1, 2]])  # each element in list of batch should be of equal
data._utils.collate.default_collate([numpy.array(['x'])])\
  # batch must contain tensors, numpy arrays, numbers, dicts or lists; found <U1
data.random_split([1, 2], [0.5, 0.75, -0.25])  # at index 2 is not between 0 and 1
"""

OWN = """
setattr(data._utils.worker.WorkerInfo(id=1), 'id', 2)\
  # RuntimeError: Cannot assign attributes to WorkerInfo objects
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
