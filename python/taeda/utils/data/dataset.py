"""What a loader draws from: indexed or iterable samples."""

from __future__ import annotations

import sys
from bisect import bisect_right
from itertools import accumulate

import taeda

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]

_Alias = type(list[int])
_PIPES = "taeda.utils.data.datapipes.datapipe"


def is_pipe(dataset, kind: str = "IterDataPipe") -> bool:
    """Whether a dataset is a pipe; their module is not imported for this."""
    module = sys.modules.get(_PIPES)
    return module is not None and isinstance(dataset, getattr(module, kind))


class Dataset:
    """Samples by index. A subclass defines `__getitem__`, and mostly `__len__`.

    With `__getitems__(indices) -> list` a whole batch is fetched in one call.

    Example:
        >>> class Squares(Dataset):
        ...     def __len__(self):
        ...         return 10
        ...     def __getitem__(self, index):
        ...         return index**2
    """

    __class_getitem__ = classmethod(_Alias)

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples by iteration. A subclass defines `__iter__`.

    In a worker, `get_worker_info()` says which part is to be given.

    Example:
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(10))
    """

    def __new__(cls, *args, **kwargs):
        if cls.__iter__ is IterableDataset.__iter__:
            raise TypeError(
                f"Can't instantiate abstract class {cls.__name__} with abstract "
                "method __iter__"
            )
        return super().__new__(cls)

    def __iter__(self):
        """The samples, one after the other."""

    def __add__(self, other) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors: sample i is (t[i] for each tensor).

    Args:
        tensors: of equal size in dimension 0.

    Raises:
        AssertionError: their sizes differ.

    Example:
        >>> TensorDataset(taeda.zeros(5, 2), taeda.arange(5))[3]
        (tensor([0., 0.]), tensor(3))
    """

    def __init__(self, *tensors) -> None:
        if len({t.size(0) for t in tensors}) > 1:
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _batch(self, indices: list) -> list:
        """What collating the samples of `indices` gives, without the samples."""
        first, count = indices[0], len(indices)
        if indices == list(range(first, first + count)) and first >= 0:
            stop = first + count
            if stop > len(self):
                raise IndexError(f"index {stop - 1} is out of range for {len(self)}")
            return [t[first:stop].clone() for t in self.tensors]
        rows = taeda.tensor(indices)
        return [t[rows] for t in self.tensors]


def _items(dataset, indices: list) -> list:
    """The samples at `indices`, in one call where the dataset has one."""
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[i] for i in indices]
    samples = fetch(indices)
    if len(samples) != len(indices):
        raise ValueError(
            "Nested dataset's output size mismatch. Expected "
            f"{len(indices)}, got {len(samples)}"
        )
    return samples


class StackDataset(Dataset):
    """Samples of several datasets side by side, as tuples or dicts.

    Args:
        args: datasets, for tuples; kwargs: datasets, for dicts.

    Raises:
        ValueError: none, both kinds, or lengths that differ.

    Example:
        >>> StackDataset(image=taeda.zeros(2, 8, 8), text=["a", "b"])[0]["text"]
        'a'
    """

    def __init__(self, *args, **kwargs) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "At least one dataset should be passed"
                if not args
                else "Supported either by position (for tuples) or by name (for "
                "dicts), not both"
            )
        self.datasets = args or kwargs
        lengths = set(map(len, self._parts()))
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = lengths

    def _parts(self) -> list:
        named = isinstance(self.datasets, dict)
        return list(self.datasets.values() if named else self.datasets)

    def _sample(self, values):
        """One value from each part, as the datasets were given: named or not."""
        if not isinstance(self.datasets, dict):
            return tuple(values)
        return dict(zip(self.datasets, values, strict=True))

    def __getitem__(self, index):
        return self._sample(part[index] for part in self._parts())

    def __getitems__(self, indices: list) -> list:
        columns = [_items(part, indices) for part in self._parts()]
        return [self._sample(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset):
    """Datasets one after another.

    Args:
        datasets: with lengths, at least one.

    Raises:
        AssertionError: none, or an iterable dataset among them.

    Example:
        >>> len(ConcatDataset([dataset, dataset]))
        6
    """

    def __init__(self, datasets) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """Where each dataset ends."""
        return list(accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int):
        if idx < 0:
            idx += len(self)
            if idx < 0:
                raise ValueError(
                    "absolute value of index should not exceed dataset length"
                )
        which = bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The old, misspelt name of `cumulative_sizes`."""
        import warnings

        text = "`cummulative_sizes` attribute is renamed to `cumulative_sizes`"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable datasets one after another.

    Args:
        datasets: iterable datasets.

    Raises:
        AssertionError: on reaching one that is not.

    Example:
        >>> class Count(IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(2))
        >>> list(ChainDataset([Count(), Count()]))
        [0, 1, 0, 1]
    """

    def __init__(self, datasets) -> None:
        self.datasets = datasets

    def _checked(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self._checked()))


class Subset(Dataset):
    """Some samples of a dataset.

    Args:
        dataset (Dataset): indexed. indices: a sequence of its indices.

    Raises:
        NotImplementedError: a subclass overrides `__getitem__` alone, which
            batches would not see.

    Example:
        >>> len(Subset(dataset, range(2)))
        2
    """

    def __init__(self, dataset, indices) -> None:
        ways = ("__getitem__", "__getitems__")
        if [w for w in ways if _overrides(self, w)] == ["__getitem__"]:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__; "
                "batches are fetched by __getitems__(indices), so override both"
            )
        self.dataset, self.indices = dataset, indices

    def _behind(self, places) -> list:
        """What the dataset calls the samples at these places."""
        return [self.indices[place] for place in places]

    def __getitem__(self, idx):
        many = isinstance(idx, list)
        return self.dataset[self._behind(idx) if many else self.indices[idx]]

    def __getitems__(self, indices: list) -> list:
        return _items(self.dataset, self._behind(indices))

    def __len__(self) -> int:
        return len(self.indices)


def _overrides(subset: Subset, name: str) -> bool:
    return getattr(type(subset), name) is not getattr(Subset, name)


def random_split(dataset, lengths, generator=None) -> list[Subset]:
    """Split a dataset into parts drawn at random.

    Args:
        dataset (Dataset): with a length.
        lengths: sizes, or shares that sum to 1 (what is left over goes to the first
            parts in turn).
        generator (Generator): the default one if None.

    Raises:
        ValueError: sizes that do not sum to the length, a share outside [0, 1].

    Example:
        >>> train, test = random_split(dataset, [0.9, 0.1])
    """
    import math

    total, lengths = len(dataset), list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _shares(total, lengths)
    if sum(lengths) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"({sum(lengths)} and {total})"
        )
    if generator is None:
        generator = taeda.default_generator
    order = taeda.randperm(total, generator=generator).tolist()
    ends = list(accumulate(lengths))
    return [
        Subset(dataset, order[end - size : end])
        for end, size in zip(ends, lengths, strict=True)
    ]


def _shares(total: int, shares: list[float]) -> list[int]:
    for place, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {place} is not between 0 and 1")
    sizes = [int(total * share // 1) for share in shares]
    for extra in range(total - sum(sizes)):
        sizes[extra % len(sizes)] += 1
    if 0 in sizes:
        import warnings

        warnings.warn(
            f"Length of split at index {sizes.index(0)} is 0. This might result in "
            "an empty dataset.",
            stacklevel=3,
        )
    return sizes
