"""The negative binomial distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ProbsOrLogits
from taeda.distributions.gamma import Gamma
from taeda.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The number of successes before total_count failures.

    Args:
        total_count: failures to stop at; need not be whole.
        probs: the probability of success, in [0, 1).
        logits: its logit, in place of it.
    """

    _names = ("total_count", "probs", "logits")
    _more = (("total_count", 0),)
    arg_constraints = constraints._regions(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits="real",
    )
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt_one(probs, logits, validate_args, total_count)
        self.total_count = self.total_count.type_as(self._param)

    @property
    def mean(self):
        return self.total_count * taeda.exp(self.logits)

    @property
    def mode(self):
        mode = ((self.total_count - 1) * self.logits.exp()).floor()
        return mode.clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / taeda.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, taeda.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=()):
        with taeda.no_grad():
            return taeda.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        self._checked(value)
        sigmoid = taeda.nn.functional.logsigmoid
        powers = self.total_count * sigmoid(-self.logits) + value * sigmoid(self.logits)
        both = self.total_count + value
        orders = -taeda.lgamma(both) + taeda.lgamma(1.0 + value)
        orders = orders + taeda.lgamma(self.total_count)
        return powers - orders.masked_fill(both == 0.0, 0.0)
