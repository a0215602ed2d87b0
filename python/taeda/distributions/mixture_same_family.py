"""Mixtures of distributions of one family."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import Expanding, formula, of, parameters
from taeda.distributions._discrete import Categorical
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import _compatible

__all__ = ["MixtureSameFamily"]


def _check(mixture, components) -> None:
    if not isinstance(mixture, Categorical):
        raise ValueError(
            " The Mixture distribution needs to be an  instance of "
            "torch.distributions.Categorical"
        )
    if not isinstance(components, Distribution):
        raise ValueError(
            "The Component distribution need to be an instance of "
            "torch.distributions.Distribution"
        )
    mixed, (*batch, count) = mixture.batch_shape, components.batch_shape
    if not _compatible(mixed, batch):
        raise ValueError(
            f"`mixture_distribution.batch_shape` ({mixed}) is not compatible "
            f"with `component_distribution.batch_shape`({taeda.Size(batch)})"
        )
    if mixture.logits.shape[-1] != count:
        raise ValueError(
            f"`mixture_distribution component` ({mixture.logits.shape[-1]}) does not "
            f"equal `component_distribution.batch_shape[-1]` ({count})"
        )


class MixtureSameFamily(Expanding):
    """One of several components, drawn by a categorical distribution.

    Args:
        mixture_distribution: Categorical over the components.
        component_distribution: their batch's last dim is that of the components.

    Raises:
        ValueError: the two do not fit.
    """

    arg_constraints = parameters()
    has_rsample = False
    _nested = ("_mixture_distribution", "_component_distribution")
    _kept = ("_num_component", "_event_ndims")

    def __init__(
        self,
        mixture_distribution,
        component_distribution,
        validate_args: bool | None = None,
    ) -> None:
        _check(mixture_distribution, component_distribution)
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        *batch, self._num_component = component_distribution.batch_shape
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)
    _weights = of("_mixture_distribution", "probs")

    @constraints.dependent_property
    def support(self):
        components = self._component_distribution.support
        return constraints.MixtureSameFamilyConstraint(components)

    def _pad(self, x):
        """A dim for the components, before those of the event."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        """The weights with dims for the batch and the event."""
        missing = len(self._batch_shape) - len(self._mixture_distribution.batch_shape)
        ones, event = (1,) * missing, (1,) * self._event_ndims
        return x.reshape(*x.shape[:-1], *ones, x.shape[-1], *event)

    def _mean_of(self, values):
        """Over the components."""
        weights = self._pad_mixture_dimensions(self._weights)
        return (weights * values).sum(-1 - self._event_ndims)

    mean = formula(lambda self: self._mean_of(self._component_distribution.mean))
    # That within components, and that of their means.
    variance = formula(
        lambda self, mean, _component_distribution: self._mean_of(
            _component_distribution.variance
            + (_component_distribution.mean - self._pad(mean)) ** 2
        )
    )

    def cdf(self, x):
        """The mean of the components' distribution functions."""
        each = self._component_distribution.cdf(self._pad(x))
        return (each * self._weights).sum(-1)

    def log_prob(self, x):
        """The logarithm of the components' mean density."""
        if self._validate_args:
            self._validate_sample(x)
        each = self._component_distribution.log_prob(self._pad(x))
        return (each + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()):
        """Samples of components drawn for each, without gradient."""
        with taeda.no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            at = drawn.dim() - 1 - self._event_ndims
            shape = drawn.shape[:at]
            which = which.reshape(*which.shape, *(1,) * (1 + self._event_ndims))
            which = which.expand(*shape, 1, *self._event_shape)
            return drawn.gather(at, which).squeeze(at)

    def __repr__(self) -> str:
        own = f"{self._mixture_distribution},\n  {self._component_distribution}"
        return f"MixtureSameFamily(\n  {own})"
