"""The orders in which samples are drawn."""

from __future__ import annotations

from itertools import islice

import taeda

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_Alias = type(list[int])


def _check_count(name: str, value) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(
            f"{name} should be a positive integer value, but got {name}={value}"
        )


def drawn_seed(generator=None) -> int:
    """A seed from a generator, by PyTorch's way of drawing one."""
    empty = taeda.empty((), dtype=taeda.int64)
    return int(empty.random_(generator=generator).item())


class Sampler:
    """Base class: a subclass defines `__iter__`, and mostly `__len__`.

    Example:
        >>> class Backwards(Sampler):
        ...     def __iter__(self):
        ...         return iter(range(9, -1, -1))
    """

    __class_getitem__ = classmethod(_Alias)

    def __init__(self, data_source=None) -> None:
        pass

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler):
    """Every index in order.

    Args:
        data_source: has a length.

    Example:
        >>> list(SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source) -> None:
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices at random, in PyTorch's order for the same seed.

    Args:
        data_source: has a length.
        replacement (bool): an index may come more than once.
        num_samples (int): how many; the length if None.
        generator (Generator): a fresh one, seeded from the default, if None.

    Raises:
        TypeError, ValueError: an option of the wrong kind.

    Example:
        >>> sorted(RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source,
        replacement: bool = False,
        num_samples: int | None = None,
        generator=None,
    ) -> None:
        self.data_source, self.generator = data_source, generator
        self.replacement, self._num_samples = replacement, num_samples
        if not isinstance(replacement, bool):
            raise TypeError(
                "replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        _check_count("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices are drawn."""
        given = self._num_samples
        return len(self.data_source) if given is None else given

    def __iter__(self):
        size, left = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            seed = drawn_seed()
            generator = taeda.Generator()
            generator.manual_seed(seed)
        while self.replacement:
            # Blocks of 32, and a last one even if empty: so the stream is used.
            count = min(32, left)
            draw = {"dtype": taeda.int64, "generator": generator}
            yield from taeda.randint(high=size, size=(count,), **draw).tolist()
            left -= count
            if count < 32:
                return
        while True:
            order = taeda.randperm(size, generator=generator).tolist()
            yield from order[:left]
            left -= size
            if left < 0:
                return

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given indices in random order.

    Args:
        indices: a sequence. generator (Generator): the default one if None.
    """

    def __init__(self, indices, generator=None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self):
        order = taeda.randperm(len(self.indices), generator=self.generator)
        yield from (self.indices[i] for i in order.tolist())

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices with given probabilities.

    Args:
        weights: a sequence of numbers, not necessarily of sum 1.
        num_samples (int): how many. replacement (bool): an index may come again.
        generator (Generator): the default one if None.

    Raises:
        ValueError: an option of the wrong kind.

    Example:
        >>> len(list(WeightedRandomSampler([0.1, 0.9], 5)))
        5
    """

    def __init__(
        self, weights, num_samples: int, replacement: bool = True, generator=None
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                "replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        self.weights = taeda.as_tensor(weights, dtype=taeda.double)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement = num_samples, replacement
        self.generator = generator

    def __iter__(self):
        drawn = taeda.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of indices from another sampler.

    Args:
        sampler: yields indices. batch_size (int): length of a list.
        drop_last (bool): leave out a last, shorter list.

    Raises:
        ValueError: an option of the wrong kind.

    Example:
        >>> list(BatchSampler(range(5), 2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler, batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"drop_last should be a boolean value, but got drop_last={drop_last}"
            )
        self.sampler, self.batch_size = sampler, batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
