"""The binomial distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ProbsOrLogits

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    # max(x, 0) with the gradient 0.5 at 0.
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits):
    """The number of successes.

    Args:
        total_count: the number of trials.
        probs: the probability of success.
        logits: its logit, in place of it.
    """

    _names = ("total_count", "probs", "logits")
    _more = (("total_count", 0),)
    arg_constraints = constraints._regions(
        total_count="nonnegative_integer", probs="unit_interval", logits="real"
    )
    has_enumerate_support = True

    def __init__(
        self, total_count=1, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt_one(probs, logits, validate_args, total_count)
        self.total_count = self.total_count.type_as(self._param)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.binomial(
                self.total_count.expand(shape), self.probs.expand(shape)
            )

    def log_prob(self, value):
        self._checked(value)
        n, k = self.total_count, value
        orders = taeda.lgamma(n + 1) - taeda.lgamma(k + 1) - taeda.lgamma(n - k + 1)
        rest = n * _clamp_by_zero(self.logits) + n * taeda.log1p(
            taeda.exp(-taeda.abs(self.logits))
        )
        return k * self.logits + orders - rest

    def entropy(self):
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `entropy`."
            )
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(taeda.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True):
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        options = {"dtype": self._param.dtype, "device": self._param.device}
        values = taeda.arange(1 + count, **options)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
