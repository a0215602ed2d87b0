"""The beta distribution."""

from __future__ import annotations

from numbers import Real

import taeda
from taeda.distributions import constraints
from taeda.distributions.dirichlet import Dirichlet
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1).

    Args:
        concentration1: often alpha.
        concentration0: often beta.
    """

    arg_constraints = constraints._regions(
        concentration1="positive", concentration0="positive"
    )
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1, concentration0, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, Real) and isinstance(concentration0, Real):
            pair = taeda.tensor([float(concentration1), float(concentration0)])
        else:
            pair = taeda.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(pair, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Beta, _instance)
        shape = taeda.Size(batch_shape)
        new._dirichlet = self._dirichlet.expand(shape)
        super(Beta, new).__init__(shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def concentration1(self):
        """Often alpha."""
        return self._first(0)

    @property
    def concentration0(self):
        """Often beta."""
        return self._first(1)

    def _first(self, place: int):
        value = self._dirichlet.concentration[..., place]
        return taeda.tensor([value]) if isinstance(value, Real) else value

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        product = self.concentration1 * self.concentration0
        return product / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(taeda.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, x, y):
        return taeda.lgamma(x) + taeda.lgamma(y) - taeda.lgamma(x + y)
