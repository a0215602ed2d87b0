"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import taeda
from taeda import inf
from taeda.distributions import constraints
from taeda.distributions.cauchy import Cauchy
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The magnitude of Cauchy numbers.

    Args:
        scale: of those.
    """

    arg_constraints = constraints._regions(scale="positive")
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def scale(self):
        """Of the Cauchy numbers."""
        return self.base_dist.scale

    @property
    def mean(self):
        shape = self._extended_shape()
        return taeda.full(shape, inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def mode(self):
        return taeda.zeros_like(self.scale)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        options = {"dtype": self.base_dist.scale.dtype, "device": self.scale.device}
        value = taeda.as_tensor(value, **options)
        found = self.base_dist.log_prob(value) + math.log(2)
        return taeda.where(value >= 0, found, -inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
