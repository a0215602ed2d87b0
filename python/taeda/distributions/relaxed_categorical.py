"""One-hot vectors made continuous."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.categorical import Categorical
from taeda.distributions.distribution import Distribution
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import ExpTransform
from taeda.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed one-hot vectors.

    Args:
        temperature: how far from the corners they are.
        probs: weights of the places along the last dim.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = constraints._regions(probs="simplex", logits="real_vector")
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        batch, event = self._categorical.batch_shape, self._categorical.param_shape
        super().__init__(batch, event[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        shape = taeda.Size(batch_shape)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(shape)
        super(ExpRelaxedCategorical, new).__init__(
            shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._categorical.param_shape

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        logits = self.logits
        drawn = taeda.rand(shape, dtype=logits.dtype, device=logits.device)
        gumbels = -((-(clamp_probs(drawn).log())).log())
        scores = (logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        count = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        scale = taeda.full_like(self.temperature, float(count)).lgamma()
        scale = scale - self.temperature.log().mul(-(count - 1))
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1)
        return score + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probabilities near one-hot vectors (Gumbel-softmax); differentiable.

    Args:
        temperature: how far from the corners they are.
        probs: weights of the places along the last dim.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = constraints._regions(probs="simplex", logits="real_vector")
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(
            temperature, probs, logits, validate_args=validate_args
        )
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self):
        """How far from the corners the vectors are."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probabilities."""
        return self.base_dist.probs
