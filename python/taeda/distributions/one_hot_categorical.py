"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.categorical import Categorical
from taeda.distributions.distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """A vector with a single 1.

    Args:
        probs: weights of the places along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = constraints._regions(probs="simplex", logits="real_vector")
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        batch, event = self._categorical.batch_shape, self._categorical.param_shape
        super().__init__(batch, event[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
        shape = taeda.Size(batch_shape)
        new._categorical = self._categorical.expand(shape)
        super(OneHotCategorical, new).__init__(
            shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self):
        return self._categorical._param

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def mean(self):
        return self._categorical.probs

    @property
    def mode(self):
        places = self._categorical.mode
        count = self._categorical._num_events
        return taeda.nn.functional.one_hot(places, num_classes=count).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        places = self._categorical.sample(taeda.Size(sample_shape))
        count = self._categorical._num_events
        return taeda.nn.functional.one_hot(places, count).to(self.probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True):
        n = self.event_shape[0]
        values = taeda.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        samples = self.sample(sample_shape)
        probs = self._categorical.probs
        return samples + (probs - probs.detach())
