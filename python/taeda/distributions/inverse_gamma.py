"""The inverse gamma distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.gamma import Gamma
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x of gamma numbers.

    Args:
        concentration: the shape of those.
        rate: their rate.
    """

    arg_constraints = constraints._regions(concentration="positive", rate="positive")
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus = -base.rate.new_ones(())
        super().__init__(base, PowerTransform(minus), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def concentration(self):
        """The shape of the gamma numbers."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The rate of the gamma numbers."""
        return self.base_dist.rate

    @property
    def mean(self):
        result = self.rate / (self.concentration - 1)
        return taeda.where(self.concentration > 1, result, taeda.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        result = self.rate.square() / ((a - 1).square() * (a - 2))
        return taeda.where(a > 2, result, taeda.inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
