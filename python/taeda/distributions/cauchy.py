"""The Cauchy distribution."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import Elementwise

__all__ = ["Cauchy"]


class Cauchy(Elementwise):
    """The ratio of two normal numbers, moved and scaled; it has no mean.

    Args:
        loc: the median.
        scale: half of the width at half height.
    """

    _names = ("loc", "scale")
    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        self._adopt((loc, scale), validate_args)

    @property
    def mean(self):
        return taeda.full_like(self.loc, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return taeda.full_like(self.loc, math.inf)

    def rsample(self, sample_shape=()):
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        self._checked(value)
        distance = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - distance.log1p()

    def cdf(self, value):
        self._checked(value)
        return taeda.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return taeda.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
