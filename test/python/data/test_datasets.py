"""Datasets, samplers and collating, against PyTorch where it is installed."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple

import pytest
import taeda
import torch
from taeda.utils import data

theirs = torch.utils.data

Point = namedtuple("Point", "x y")


class Count(data.IterableDataset):
    def __init__(self, stop: int) -> None:
        self.stop = stop

    def __iter__(self):
        return iter(range(self.stop))

    def __len__(self) -> int:
        return self.stop


def rows(count: int = 10):
    return data.TensorDataset(taeda.arange(count), taeda.arange(count) * 2.0)


def test_tensor_dataset() -> None:
    x, y = rows()[3]
    assert (x.item(), y.item(), len(rows())) == (3, 6.0, 10)
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(taeda.zeros(2), taeda.zeros(3))


def test_whole_batches_of_rows_equal_collated_samples() -> None:
    dataset = rows()
    for indices in ([2, 3, 4], [7, 0, 7], [-1, 2], [9]):
        want = data.default_collate([dataset[i] for i in indices])
        have = dataset._batch(indices)
        assert [h.tolist() for h in have] == [w.tolist() for w in want]
    batch = dataset._batch([0, 1])
    batch[0].fill_(99)
    assert dataset.tensors[0][0].item() == 0
    with pytest.raises(IndexError):
        dataset._batch([9, 10])


def test_concat_chain_stack_and_subset() -> None:
    both = rows(3) + rows(4)
    assert len(both) == 7
    assert [both[i][0].item() for i in (2, 3, -1)] == [2, 0, 3]
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-8]
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Count(2)])
    chain = Count(2) + Count(3)
    assert list(chain) == [0, 1, 0, 1, 2]
    assert len(chain) == 5
    stack = data.StackDataset(a=[1, 2, 3], b="xyz")
    assert stack[1] == {"a": 2, "b": "y"}
    assert stack.__getitems__([0, 2]) == [{"a": 1, "b": "x"}, {"a": 3, "b": "z"}]
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset([1], [1, 2])
    part = data.Subset([10, 20, 30], [2, 0])
    assert (part[0], len(part), part.__getitems__([1, 0])) == (30, 2, [10, 30])


def test_a_subset_that_hides_its_items_is_refused() -> None:
    class Half(data.Subset):
        def __getitem__(self, idx):
            return super().__getitem__(idx) / 2

    with pytest.raises(NotImplementedError, match="__getitems__"):
        Half([1, 2], [0])


@pytest.mark.parametrize("lengths", [[7, 3], [0.65, 0.35], [0.5, 0.25, 0.25]])
def test_random_split_is_pytorchs(lengths) -> None:
    def run(lib, tools):
        generator = lib.Generator()
        generator.manual_seed(5)
        return [list(p) for p in tools.random_split(range(10), lengths, generator)]

    assert run(taeda, data) == run(torch, theirs)
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(10), [4, 4])


SAMPLERS = {
    "sequential": lambda t, g: t.SequentialSampler(range(5)),
    "random": lambda t, g: t.RandomSampler(range(7), generator=g),
    "random default": lambda t, g: t.RandomSampler(range(7)),
    "more than all": lambda t, g: t.RandomSampler(range(3), num_samples=8, generator=g),
    "replacement": lambda t, g: t.RandomSampler(
        range(5), replacement=True, num_samples=70, generator=g
    ),
    "subset": lambda t, g: t.SubsetRandomSampler([4, 8, 15], generator=g),
    "weighted": lambda t, g: t.WeightedRandomSampler([0.1, 0.5, 0.4], 12, generator=g),
    "batch": lambda t, g: t.BatchSampler(range(7), 3, False),
    "whole batches": lambda t, g: t.BatchSampler(range(7), 3, True),
    "distributed": lambda t, g: t.DistributedSampler(range(11), 3, 1, seed=4),
    "distributed even": lambda t, g: t.DistributedSampler(
        range(11), 3, 2, drop_last=True, shuffle=False
    ),
    "few for many": lambda t, g: t.DistributedSampler(range(2), 5, 4, shuffle=False),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_as_pytorch(name) -> None:
    def run(lib, tools):
        lib.manual_seed(11)
        generator = lib.Generator()
        generator.manual_seed(3)
        sampler = SAMPLERS[name](tools, generator)
        return [list(sampler), list(sampler), len(sampler), lib.rand(1).item()]

    assert run(taeda, data) == run(torch, theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.RandomSampler(range(9)),
        lambda t: t.RandomSampler(range(9), replacement=True),
        lambda t: t.SubsetRandomSampler(range(9)),
        lambda t: t.WeightedRandomSampler([0.1, 0.5, 0.4], 9),
    ],
)
def test_a_sampler_draws_with_its_first_index(make) -> None:
    """So a loader without batches draws its workers' seed before the order."""

    def run(lib, tools):
        lib.manual_seed(5)
        first, second = iter(make(tools)), iter(make(tools))
        seen = [lib.rand(1).item(), *second, *first]
        loader = tools.DataLoader(range(9), batch_size=None, sampler=make(tools))
        return [*seen, *loader, *loader]

    assert run(taeda, data) == run(torch, theirs)


ERRORS = [
    (lambda: data.RandomSampler([]), ValueError, "num_samples"),
    (lambda: data.RandomSampler([1], replacement=3), TypeError, "replacement"),
    (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size"),
    (lambda: data.BatchSampler([1], 1, 1), ValueError, "drop_last"),
    (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
    (lambda: data.DistributedSampler([1], 2, 2), ValueError, "Invalid rank"),
    (lambda: data.DataLoader([1], num_workers=-1), ValueError, "num_workers"),
    (lambda: data.DataLoader([1], timeout=-1), ValueError, "timeout"),
    (lambda: data.DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor"),
    (lambda: data.DataLoader([1], persistent_workers=True), ValueError, "persistent"),
    (lambda: data.DataLoader([1], sampler=[0], shuffle=True), ValueError, "sampler"),
    (lambda: data.DataLoader([1], 2, batch_sampler=[[0]]), ValueError, "batch_sampler"),
    (lambda: data.DataLoader([1], None, drop_last=True), ValueError, "auto-batching"),
    (lambda: data.DataLoader(Count(2), shuffle=True), ValueError, "shuffle"),
    (
        lambda: data.DataLoader([1], multiprocessing_context="fork"),
        ValueError,
        "num_workers > 0",
    ),
    (
        lambda: data.DataLoader([1], num_workers=1, multiprocessing_context="x"),
        ValueError,
        "valid start method",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_refused_arguments(call, kind, text) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_a_loaders_dataset_is_fixed() -> None:
    loader = data.DataLoader([1, 2])
    with pytest.raises(ValueError, match="should not be set"):
        loader.dataset = [3]


def plain(value):
    """Tensors to (dtype, numbers), containers to pairs of type and entries."""
    if hasattr(value, "tolist"):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        entries = {k: plain(v) for k, v in value.items()}
        return type(value).__name__, list(entries.items())
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return value


BATCHES = {
    "numbers": [1, 2],
    "floats": [0.5, 1.5],
    "truth": [True, False],
    "texts": ["a", "b"],
    "tuples": [(1, "a"), (2, "b")],
    "lists": [[1, 2.0], [3, 4.0]],
    "dicts": [{"a": 1, "b": [2, 3]}, {"a": 4, "b": [5, 6]}],
    "ordered": [OrderedDict(a=1), OrderedDict(a=2)],
    "named": [Point(1, 2.0), Point(3, 4.0)],
    "default dicts": [defaultdict(list, a=1), defaultdict(list, a=2)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_collating_is_pytorchs(name) -> None:
    batch = BATCHES[name]
    assert plain(data.default_collate(batch)) == plain(theirs.default_collate(batch))
    assert plain(data.default_convert(batch)) == plain(theirs.default_convert(batch))


def test_collating_numpy() -> None:
    import numpy

    batches = [
        [numpy.arange(3), numpy.arange(3)],
        [numpy.float32(1), numpy.float32(2)],
        [{"a": numpy.int16(3)}, {"a": numpy.int16(4)}],
    ]
    for batch in batches:
        want, have = theirs.default_collate(batch), data.default_collate(batch)
        assert plain(want) == plain(have)
    with pytest.raises(TypeError, match="must contain tensors"):
        data.default_collate([numpy.array(["a"])])


def test_what_cannot_be_collated() -> None:
    with pytest.raises(TypeError, match="must contain tensors"):
        data.default_collate([object(), object()])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])
    uneven = [taeda.zeros(2), taeda.zeros(3)]
    with pytest.raises(RuntimeError):
        data.default_collate(uneven)


def test_lengths() -> None:
    loader = data.DataLoader
    assert len(loader(range(10), 3)) == 4
    assert len(loader(range(10), 3, drop_last=True)) == 3
    assert len(loader(Count(10), 4)) == 3
    assert len(loader(Count(10), None)) == 10


def test_a_dataset_longer_than_it_says_warns() -> None:
    class Liar(Count):
        def __len__(self) -> int:
            return 1

    loader = data.DataLoader(Liar(3), None)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="reported to be 1"):
        assert list(loader) == [0, 1, 2]
