"""The Gumbel distribution."""

from __future__ import annotations

import math
from numbers import Number

import taeda
from taeda.distributions import constraints
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import AffineTransform, ExpTransform
from taeda.distributions.uniform import Uniform
from taeda.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """loc - scale log(-log(u)) of uniform numbers u.

    Args:
        loc: the mode.
        scale: the width.
    """

    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.real

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        plain = isinstance(loc, Number) and isinstance(scale, Number)
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = taeda.finfo(self.loc.dtype)
        low, high = finfo.tiny, 1 - finfo.eps
        if not plain:
            low = taeda.full_like(self.loc, low)
            high = taeda.full_like(self.loc, high)
        base = Uniform(low, high, validate_args=validate_args)
        minus = -taeda.ones_like(self.scale)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=minus),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        below = (self.loc - value) / self.scale
        return below - below.exp() - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
