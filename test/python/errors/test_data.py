"""Data sets and loaders: what they refuse."""

from __future__ import annotations

import pytest
from refusals import cases, check_refused_as_by, check_refused_otherwise

TABLE = """
data.Dataset()[0]  # Subclasses of Dataset should implement __getitem__.
data.StackDataset()  # At least one dataset should be passed
(d := made(data.Dataset, __getitem__=lambda s, i: i, __getitems__=lambda s, l: [], \
__len__=lambda s: 2)(), data.StackDataset(d).__getitems__([0]))\
  # Nested dataset's output size mismatch. Expected 1, got 0
data.ConcatDataset([])  # datasets should not be an empty iterable
list(data.ChainDataset([[1]]))  # ChainDataset only supports IterableDataset
iter(data.Sampler())  # Sampler does not define __iter__
data.WeightedRandomSampler([1], 1, replacement=1)  # value, but got replacement=1
data.DataLoader([1], num_workers=1, prefetch_factor=-1)\
  # prefetch_factor option should be non-negative
data.DataLoader([1], num_workers=1, multiprocessing_context=1)\
  # be a valid context object or a string specifying the start method, but got 1
pickle.dumps(iter(data.DataLoader([1])))  # SingleProcessIterator cannot be pickled
data._utils.nothing  # module 'taeda.utils.data._utils' has no attribute 'nothing'
"""

OWN = """
iter(data.IterableDataset())  # NotImplementedError: Subclasses of IterableDataset
data.distributed.DistributedSampler([1])\
  # RuntimeError: Requires distributed package to be available
setattr(data._utils.worker.WorkerInfo(id=1), 'id', 2)\
  # RuntimeError: Cannot assign attributes to WorkerInfo objects
"""


@pytest.mark.parametrize(("call", "phrase"), cases(TABLE))
def test_refused_as_by_pytorch(torch, call, phrase) -> None:
    check_refused_as_by(torch, call, phrase)


@pytest.mark.parametrize(("call", "phrase"), cases(OWN))
def test_refused_in_our_own_way(torch, call, phrase) -> None:
    check_refused_otherwise(torch, call, phrase)
