"""The normal distribution."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ElementwiseFamily

__all__ = ["Normal"]


class Normal(ElementwiseFamily):
    """The normal (Gaussian) distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> taeda.distributions.Normal(0.0, 1.0).log_prob(taeda.tensor(0.0))
        tensor(-0.9189)
    """

    _names = ("loc", "scale")
    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        self._adopt((loc, scale), validate_args)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=()):
        from taeda.distributions.utils import _standard_normal

        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value):
        self._checked(value)
        spread = 2 * self.scale**2
        height = self.scale.log() + math.log(math.sqrt(2 * math.pi))
        return -((value - self.loc) ** 2) / spread - height

    def cdf(self, value):
        self._checked(value)
        steps = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + taeda.erf(steps))

    def icdf(self, value):
        return self.loc + self.scale * taeda.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + taeda.log(self.scale)

    @property
    def _natural_params(self):
        precision = self.scale.pow(2).reciprocal()
        return (self.loc * precision, -0.5 * precision)

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * taeda.log(-math.pi / y)
