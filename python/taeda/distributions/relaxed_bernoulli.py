"""Bernoulli numbers made continuous."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ProbsOrLogits
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import SigmoidTransform
from taeda.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """Logits of relaxed Bernoulli numbers.

    Args:
        temperature: how far from 0 and 1 they are.
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    _names = ("probs", "logits")
    arg_constraints = constraints._regions(probs="unit_interval", logits="real")
    support = constraints.real

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._adopt_one(probs, logits, validate_args)

    def _copy_rest(self, new) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = taeda.rand(shape, dtype=p.dtype, device=p.device)
        u = clamp_probs(u)
        logit = u.log() - (-u).log1p() + p.log() - (-p).log1p()
        return logit / self.temperature

    def log_prob(self, value):
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1) near those of a Bernoulli distribution; differentiable.

    Args:
        temperature: how far from 0 and 1 they are.
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    arg_constraints = constraints._regions(probs="unit_interval", logits="real")
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedBernoulli, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self):
        """How far from 0 and 1 the numbers are."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The logit of 1."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probability of 1."""
        return self.base_dist.probs
