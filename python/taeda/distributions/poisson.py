"""The Poisson distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ElementwiseFamily
from taeda.distributions.utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ElementwiseFamily):
    """Counts of independent events.

    Args:
        rate: their mean.
    """

    _names = ("rate",)
    arg_constraints = constraints._regions(rate="nonnegative")
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args: bool | None = None) -> None:
        self._adopt((rate,), validate_args)

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return self.rate.floor()

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.poisson(self.rate.expand(shape))

    def log_prob(self, value):
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (taeda.log(self.rate),)

    def _log_normalizer(self, x):
        return taeda.exp(x)
