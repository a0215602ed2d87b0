"""The multinomial distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import Binomial, Categorical, constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K numbers was drawn.

    Args:
        total_count: the number of draws, a plain int.
        probs: weights of the numbers along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = constraints._regions(probs="simplex", logits="real_vector")

    def __init__(
        self,
        total_count: int = 1,
        probs=None,
        logits=None,
        validate_args: bool | None = None,
    ) -> None:
        if type(total_count) is not int:
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self._categorical = Categorical(probs, logits)
        self.total_count = total_count
        batch, event = self._categorical.batch_shape, self._categorical.param_shape
        super().__init__(batch, event[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        shape = taeda.Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(shape)
        super(Multinomial, new).__init__(shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

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

    def sample(self, sample_shape=()):
        sample_shape = taeda.Size(sample_shape)
        drawn = self._categorical.sample(taeda.Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = drawn.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, drawn, taeda.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self):
        n = taeda.tensor(self.total_count)
        draws = n * self._categorical.entropy() - taeda.lgamma(n + 1)
        counts = Binomial(self.total_count, self.probs)
        values = counts.enumerate_support(expand=False)[1:]
        weights = taeda.exp(counts.log_prob(values)) * taeda.lgamma(values + 1)
        return draws + weights.sum([0, -1])

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=taeda.contiguous_format)
        orders = taeda.lgamma(value.sum(-1) + 1) - taeda.lgamma(value + 1).sum(-1)
        logits[(value == 0) & (logits == -taeda.inf)] = 0
        return orders + (logits * value).sum(-1)
