"""The geometric distribution."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._elementwise import ProbsOrLogits
from taeda.distributions.utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The number of failures before the first success.

    Args:
        probs: the probability of success, in (0, 1].
        logits: its logit, in place of it.
    """

    _names = ("probs", "logits")
    arg_constraints = constraints._regions(probs="unit_interval", logits="real")
    support = constraints.nonnegative_integer

    def __init__(
        self, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt_one(probs, logits, validate_args)
        if self._validate_args and probs is not None:
            if not (self.probs > 0).all():
                bad = self.probs[~(self.probs > 0)]
                raise ValueError(
                    "Expected parameter probs "
                    f"({type(self.probs).__name__} of shape {tuple(bad.shape)}) "
                    f"of distribution {self!r} to be positive but found invalid "
                    f"values:\n{bad}"
                )

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return taeda.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        tiny = taeda.finfo(self.probs.dtype).tiny
        with taeda.no_grad():
            u = self.probs.new(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._checked(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=taeda.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        cross = taeda.nn.functional.binary_cross_entropy_with_logits
        return cross(self.logits, self.probs, reduction="none") / self.probs
