"""The Laplace distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import Elementwise

__all__ = ["Laplace"]


class Laplace(Elementwise):
    """Density exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc: the mean.
        scale: the mean distance from it.
    """

    _names = ("loc", "scale")
    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        self._adopt((loc, scale), validate_args)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2**0.5 * self.scale

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        finfo = taeda.finfo(self.loc.dtype)
        u = self.loc.new(shape).uniform_(finfo.eps - 1, 1)
        return self.loc - self.scale * u.sign() * taeda.log1p(-u.abs())

    def log_prob(self, value):
        self._checked(value)
        distance = taeda.abs(value - self.loc) / self.scale
        return -taeda.log(2 * self.scale) - distance

    def cdf(self, value):
        self._checked(value)
        offset = value - self.loc
        tail = taeda.expm1(-offset.abs() / self.scale)
        return 0.5 - 0.5 * offset.sign() * tail

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * taeda.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + taeda.log(2 * self.scale)
