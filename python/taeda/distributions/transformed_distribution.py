"""Distributions of transformed values."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.independent import Independent
from taeda.distributions.transforms import ComposeTransform, Transform
from taeda.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


def _listed(transforms) -> list:
    given = [transforms] if isinstance(transforms, Transform) else transforms
    if not isinstance(given, list):
        raise ValueError(f"transforms must be a Transform or list, but was {given}")
    if any(not isinstance(each, Transform) for each in given):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return given


class TransformedDistribution(Distribution):
    """What transforms make of a distribution's samples.

    Args:
        base_distribution: of the samples.
        transforms: one transform, or a list in order of use.
    """

    arg_constraints: dict = {}

    def __init__(
        self, base_distribution, transforms, validate_args: bool | None = None
    ) -> None:
        self.transforms = _listed(transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {shape}."
            )
        forward = transform.forward_shape(shape)
        grown = transform.inverse_shape(forward)
        if shape != grown:
            batch = grown[: len(grown) - base_event]
            base_distribution = base_distribution.expand(batch)
        more = transform.domain.event_dim - base_event
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        left = max(base_event - transform.domain.event_dim, 0)
        event = transform.codomain.event_dim + left
        cut = len(forward) - event
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        shape = taeda.Size(batch_shape)
        whole = shape + self.event_shape
        for t in reversed(self.transforms):
            whole = t.inverse_shape(whole)
        base_event = len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(whole[: len(whole) - base_event])
        new.transforms = self.transforms
        super(TransformedDistribution, new).__init__(
            shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()):
        with taeda.no_grad():
            x = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                x = transform(x)
            return x

    def rsample(self, sample_shape=()):
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        event = len(self.event_shape)
        log_prob, y = 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event += transform.domain.event_dim - transform.codomain.event_dim
            found = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(
                found, event - transform.domain.event_dim
            )
            y = x
        base = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(base, event - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        # A falling transform turns the distribution function around.
        sign = ComposeTransform(self.transforms).sign
        plain = isinstance(sign, int) and sign == 1
        return value if plain else 0.5 + sign * (value - 0.5)

    def cdf(self, value):
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self._monotonize_cdf(value))
        for transform in self.transforms:
            value = transform(value)
        return value
