"""The categorical distribution."""

from __future__ import annotations

import taeda
from taeda import nan
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of K numbers from 0 on.

    Args:
        probs: weights of the numbers along the last dim; they are normalised.
        logits: logarithms of weights, in place of them.

    Example:
        >>> taeda.distributions.Categorical(taeda.tensor([0.25, 0.75])).mode
        tensor(1)
    """

    arg_constraints = constraints._regions(probs="simplex", logits="real_vector")
    has_enumerate_support = True

    def __init__(
        self, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(
                "Either `probs` or `logits` must be specified, but not both."
            )
        name, given = ("probs", probs) if logits is None else ("logits", logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if logits is None else self.logits
        self._num_events = self._param.size()[-1]
        shape = self._param.size()[:-1] if self._param.ndimension() > 1 else None
        super().__init__(shape or taeda.Size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        shape = taeda.Size(batch_shape)
        whole = shape + taeda.Size((self._num_events,))
        for name in ("probs", "logits"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(whole))
        given = "probs" if self._param is self.__dict__.get("probs") else "logits"
        new._param = getattr(new, given)
        new._num_events = self._num_events
        super(Categorical, new).__init__(shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """Logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.size()

    @property
    def mean(self):
        return self._nothing()

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    @property
    def variance(self):
        return self._nothing()

    def _nothing(self):
        options = {"dtype": self.probs.dtype, "device": self.probs.device}
        return taeda.full(self._extended_shape(), nan, **options)

    def sample(self, sample_shape=()):
        if not isinstance(sample_shape, taeda.Size):
            sample_shape = taeda.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = taeda.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = taeda.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        least = taeda.finfo(self.logits.dtype).min
        return -(taeda.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True):
        options = {"dtype": taeda.long, "device": self._param.device}
        values = taeda.arange(self._num_events, **options)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
