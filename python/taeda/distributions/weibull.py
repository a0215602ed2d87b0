"""The Weibull distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.exponential import Exponential
from taeda.distributions.gumbel import euler_constant
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import AffineTransform, PowerTransform
from taeda.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """A power of exponential numbers.

    Args:
        scale: the width.
        concentration: the inverse of the power.
    """

    arg_constraints = constraints._regions(scale="positive", concentration="positive")
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        one = taeda.ones_like(self.scale)
        steps = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        base = Exponential(one, validate_args=validate_args)
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        for name in ("scale", "concentration", "concentration_reciprocal"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        base = self.base_dist.expand(batch_shape)
        steps = [
            PowerTransform(exponent=new.concentration_reciprocal),
            AffineTransform(loc=0, scale=new.scale),
        ]
        super(Weibull, new).__init__(base, steps, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self):
        return self.scale * taeda.exp(taeda.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self):
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self):
        second = taeda.exp(taeda.lgamma(1 + 2 * self.concentration_reciprocal))
        first = taeda.exp(2 * taeda.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first)

    def entropy(self):
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + taeda.log(self.scale * inverse) + 1
