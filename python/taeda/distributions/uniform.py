"""The uniform distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import Elementwise

__all__ = ["Uniform"]


class Uniform(Elementwise):
    """Equal density from low (with it) to high (without).

    Args:
        low: the lower bound.
        high: the upper bound.

    Raises:
        ValueError: low is not below high.
    """

    _names = ("low", "high")
    has_rsample = True

    def __init__(self, low, high, validate_args: bool | None = None) -> None:
        self._adopt((low, high), validate_args)

    @property
    def arg_constraints(self) -> dict:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return float("nan") * self.high

    @property
    def stddev(self):
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self):
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        drawn = taeda.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value):
        self._checked(value)
        above = self.low.le(value).type_as(self.low)
        below = self.high.gt(value).type_as(self.low)
        return taeda.log(above.mul(below)) - taeda.log(self.high - self.low)

    def cdf(self, value):
        self._checked(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return taeda.log(self.high - self.low)
