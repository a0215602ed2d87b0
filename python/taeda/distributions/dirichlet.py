"""The Dirichlet distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Probabilities that sum to 1.

    Args:
        concentration: of each along the last dim, often alpha.
    """

    arg_constraints = constraints._regions(
        concentration=constraints.independent(constraints.positive, 1)
    )
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError(
                "`concentration` parameter must be at least one-dimensional."
            )
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Dirichlet, _instance)
        shape = taeda.Size(batch_shape)
        new.concentration = self.concentration.expand(shape + self.event_shape)
        super(Dirichlet, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        excess = (self.concentration - 1).clamp(min=0.0)
        mode = excess / excess.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        corner = taeda.nn.functional.one_hot(mode[flat].argmax(-1), mode.shape[-1])
        mode[flat] = corner.to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        share = self.concentration * (total - self.concentration)
        return share / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return taeda._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return (
            taeda.xlogy(a - 1.0, value).sum(-1)
            + taeda.lgamma(a.sum(-1))
            - taeda.lgamma(a).sum(-1)
        )

    def entropy(self):
        k = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        each = (self.concentration - 1.0) * taeda.digamma(self.concentration)
        return (
            taeda.lgamma(self.concentration).sum(-1)
            - taeda.lgamma(total)
            - (k - total) * taeda.digamma(total)
            - each.sum(-1)
        )

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - taeda.lgamma(x.sum(-1))
