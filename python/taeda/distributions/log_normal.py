"""The log-normal distribution."""

from __future__ import annotations

from taeda.distributions import constraints
from taeda.distributions.normal import Normal
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of normal numbers.

    Args:
        loc: the mean of the logarithm.
        scale: its standard deviation.
    """

    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def loc(self):
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self):
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self):
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc
