"""The gamma distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ElementwiseFamily

__all__ = ["Gamma"]


def _standard_gamma(concentration):
    return taeda._standard_gamma(concentration)


class Gamma(ElementwiseFamily):
    """Density proportional to x^(concentration - 1) exp(-rate x).

    Args:
        concentration: the shape, often alpha.
        rate: the inverse of the scale, often beta.
    """

    _names = ("concentration", "rate")
    arg_constraints = constraints._regions(concentration="positive", rate="positive")
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args: bool | None = None) -> None:
        self._adopt((concentration, rate), validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        drawn = _standard_gamma(self.concentration.expand(shape))
        value = drawn / self.rate.expand(shape)
        value.detach().clamp_(min=taeda.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value):
        value = taeda.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._checked(value)
        return (
            taeda.xlogy(self.concentration, self.rate)
            + taeda.xlogy(self.concentration - 1, value)
            - self.rate * value
            - taeda.lgamma(self.concentration)
        )

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self):
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x, y):
        return taeda.lgamma(x + 1) + (x + 1) * taeda.log(-y.reciprocal())

    def cdf(self, value):
        self._checked(value)
        return taeda.special.gammainc(self.concentration, self.rate * value)
