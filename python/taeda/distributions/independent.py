"""Batch dims as event dims."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dims count as dims of one event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dims.
    """

    arg_constraints: dict = {}

    def __init__(
        self,
        base_distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= "
                "len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        shape = batch + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        cut = len(shape) - event
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Independent, _instance)
        shape, count = taeda.Size(batch_shape), self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand(shape + self.event_shape[:count])
        new.reinterpreted_batch_ndims = count
        super(Independent, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        return (
            self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
        )

    @constraints.dependent_property
    def support(self):
        result = self.base_dist.support
        count = self.reinterpreted_batch_ndims
        return constraints.independent(result, count) if count else result

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        found = self.base_dist.log_prob(value)
        return _sum_rightmost(found, self.reinterpreted_batch_ndims)

    def entropy(self):
        found = self.base_dist.entropy()
        return _sum_rightmost(found, self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True):
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        own = f"{self.base_dist}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({own})"
