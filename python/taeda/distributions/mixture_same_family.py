"""Mixtures of distributions of one family."""

from __future__ import annotations

import taeda
from taeda.distributions import Categorical, constraints
from taeda.distributions.constraints import MixtureSameFamilyConstraint
from taeda.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of several components, drawn by a categorical distribution.

    Args:
        mixture_distribution: Categorical over the components.
        component_distribution: their batch's last dim is that of the components.
    """

    arg_constraints: dict = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution,
        component_distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        mixed = mixture_distribution.batch_shape
        batch = component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixed), reversed(batch), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible "
                    f"with `component_distribution.batch_shape`({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        if count != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                "`component_distribution.batch_shape[-1]` "
                f"({component_distribution.batch_shape[-1]})"
            )
        self._num_component = count
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        shape = taeda.Size(batch_shape)
        wide = shape + (self._num_component,)
        new._component_distribution = self._component_distribution.expand(wide)
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        event = new._component_distribution.event_shape
        super(MixtureSameFamily, new).__init__(shape, event, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """Which component."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    @property
    def mean(self):
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        at = -1 - self._event_ndims
        return taeda.sum(probs * self.component_distribution.mean, dim=at)

    @property
    def variance(self):
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        at = -1 - self._event_ndims
        within = taeda.sum(probs * self.component_distribution.variance, dim=at)
        offset = self.component_distribution.mean - self._pad(self.mean)
        return within + taeda.sum(probs * offset.pow(2.0), dim=at)

    def cdf(self, x):
        found = self.component_distribution.cdf(self._pad(x))
        return taeda.sum(found * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        found = self.component_distribution.log_prob(self._pad(x))
        weights = taeda.log_softmax(self.mixture_distribution.logits, dim=-1)
        return taeda.logsumexp(found + weights, dim=-1)

    def sample(self, sample_shape=()):
        with taeda.no_grad():
            at = len(sample_shape) + len(self.batch_shape)
            event = self.event_shape
            which = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            which = which.reshape(which.shape + (1,) * (len(event) + 1))
            which = which.repeat(taeda.Size([1] * len(which.shape[: at + 1])) + event)
            return taeda.gather(drawn, at, which).squeeze(at)

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape
        ones = (1,) * missing
        return x.reshape(shape[:-1] + ones + shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  "
            f"{self.component_distribution})"
        )
