"""Orders of samples."""

from __future__ import annotations

import random

from taeda.utils.data.sampler import SequentialSampler, drawn_seed

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler draws from a pipe.

    Args:
        datapipe: a pipe of known length.
        sampler: a class of samplers; it is made with `data_source=datapipe`.
        sampler_args, sampler_kwargs: its further arguments.
    """

    def __init__(
        self,
        datapipe,
        sampler=SequentialSampler,
        sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        if not hasattr(datapipe, "__len__"):
            raise AssertionError(
                "Sampler class requires input datapipe of known length"
            )
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class Seeded:
    """What shufflers share: a random order that a seed settles, and that can be off."""

    def _settle(self) -> None:
        self._enabled, self._seed, self._rng = True, None, random.Random()

    def set_shuffle(self, shuffle: bool = True):
        """Turn shuffling on or off; returns the pipe."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int):
        """Settle the order of the next pass; returns the pipe."""
        self._seed = seed
        return self

    def _sow(self) -> None:
        if self._seed is None:
            self._seed = drawn_seed()
        self._rng.seed(self._seed)
        self._seed = None


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Seeded, IterDataPipe):
    """The samples in a random order (functional: `shuffle`).

    A sample is drawn at random from a buffer whenever that is full, so a buffer that
    is smaller than the source gives an order that is less than random. The order is
    PyTorch's for the same seed.

    Args:
        datapipe: the source.
        buffer_size: samples to draw from.
        unbatch_level: levels of lists to take away first; -1 for all.

    Raises:
        AssertionError: buffer_size of 0 or less.
    """

    def __init__(
        self, datapipe, *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        flat = unbatch_level != 0
        self.datapipe = datapipe.unbatch(unbatch_level) if flat else datapipe
        self.buffer_size = buffer_size
        self._settle()

    def reset(self) -> None:
        if self._enabled:
            self._sow()

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        waiting: list = []
        for sample in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(sample)
                continue
            place = self._rng.randint(0, self.buffer_size - 1)
            sample, waiting[place] = waiting[place], sample
            yield sample
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
