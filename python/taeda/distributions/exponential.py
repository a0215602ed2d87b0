"""The exponential distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ElementwiseFamily

__all__ = ["Exponential"]


class Exponential(ElementwiseFamily):
    """Density rate exp(-rate x) over positive numbers.

    Args:
        rate: the inverse of the mean.
    """

    _names = ("rate",)
    arg_constraints = constraints._regions(rate="positive")
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args: bool | None = None) -> None:
        self._adopt((rate,), validate_args)

    @property
    def mean(self):
        return self.rate.reciprocal()

    @property
    def mode(self):
        return taeda.zeros_like(self.rate)

    @property
    def stddev(self):
        return self.rate.reciprocal()

    @property
    def variance(self):
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.rate.new(shape).exponential_() / self.rate

    def log_prob(self, value):
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._checked(value)
        return 1 - taeda.exp(-self.rate * value)

    def icdf(self, value):
        return -taeda.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - taeda.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -taeda.log(-x)
