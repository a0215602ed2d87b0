"""The Kumaraswamy distribution."""

from __future__ import annotations

import taeda
from taeda import nan
from taeda.distributions import constraints
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import AffineTransform, PowerTransform
from taeda.distributions.uniform import Uniform
from taeda.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moment(a, b, n: int):
    """The mean of the n-th power: b B(1 + n / a, b)."""
    first = 1 + n / a
    log = taeda.lgamma(first) + taeda.lgamma(b) - taeda.lgamma(first + b)
    return b * taeda.exp(log)


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] with the distribution function 1 - (1 - x^a)^b.

    Args:
        concentration1: a.
        concentration0: b.
    """

    arg_constraints = constraints._regions(
        concentration1="positive", concentration0="positive"
    )
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1, concentration0, validate_args: bool | None = None
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        one = taeda.ones_like(b)
        base = Uniform(
            taeda.full_like(b, 0), taeda.full_like(b, 1), validate_args=validate_args
        )
        steps = [
            PowerTransform(exponent=b.reciprocal()),
            AffineTransform(loc=one, scale=-one),
            PowerTransform(exponent=a.reciprocal()),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self):
        return _moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        log = a.reciprocal() * (-b).log1p() - (-a * b).log1p()
        log[(b < 1) | (a < 1)] = nan
        return log.exp()

    @property
    def variance(self):
        a, b = self.concentration1, self.concentration0
        return _moment(a, b, 2) - taeda.pow(self.mean, 2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = taeda.digamma(b + 1) + euler_constant
        power = (1 - a.reciprocal()) * harmonic
        return 1 - b.reciprocal() + power - taeda.log(a) - taeda.log(b)
