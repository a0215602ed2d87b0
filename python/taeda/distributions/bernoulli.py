"""The Bernoulli distribution."""

from __future__ import annotations

import taeda
from taeda import nan
from taeda.distributions import constraints
from taeda.distributions._elementwise import ProbsOrLogits

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits):
    """1 with a probability, else 0.

    Args:
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    _names = ("probs", "logits")
    arg_constraints = constraints._regions(probs="unit_interval", logits="real")
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt_one(probs, logits, validate_args)

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = nan
        return mode

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.bernoulli(self.probs.expand(shape))

    def log_prob(self, value):
        self._checked(value)
        logits, value = taeda.broadcast_tensors(self.logits, value)
        cross = taeda.nn.functional.binary_cross_entropy_with_logits
        return -cross(logits, value, reduction="none")

    def entropy(self):
        cross = taeda.nn.functional.binary_cross_entropy_with_logits
        return cross(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True):
        values = taeda.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self):
        return (taeda.logit(self.probs),)

    def _log_normalizer(self, x):
        return taeda.log1p(taeda.exp(x))
