"""Distributions of transformed values."""

from __future__ import annotations

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import Expanding, of, parameters
from taeda.distributions.independent import Independent
from taeda.distributions.transforms import ComposeTransform, Transform
from taeda.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


def _listed(transforms) -> list:
    given = [transforms] if isinstance(transforms, Transform) else transforms
    if not isinstance(given, list):
        raise ValueError(f"transforms must be a Transform or list, but was {given}")
    if not all(isinstance(each, Transform) for each in given):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return given


def _fitted(distribution, shape, rank: int):
    """A distribution of this whole shape whose events have at least `rank` dims."""
    batch = shape[: len(shape) - len(distribution.event_shape)]
    if batch != distribution.batch_shape:
        distribution = distribution.expand(batch)
    more = rank - len(distribution.event_shape)
    return Independent(distribution, more) if more > 0 else distribution


class TransformedDistribution(Expanding):
    """What transforms make of a distribution's samples.

    Args:
        base_distribution: of the samples.
        transforms: one transform, or a list in order of use.

    Raises:
        ValueError: no transforms, or the samples have too few dims for them.
    """

    arg_constraints = parameters()

    def __init__(
        self, base_distribution, transforms, validate_args: bool | None = None
    ) -> None:
        self.transforms = _listed(transforms)
        chain = ComposeTransform(self.transforms)
        inner, outer = chain.domain.event_dim, chain.codomain.event_dim
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < inner:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{inner}, but got {shape}."
            )
        whole = chain.forward_shape(shape)
        self.base_dist = _fitted(base_distribution, chain.inverse_shape(whole), inner)
        # Event dims beyond those that the transforms take pass through them.
        cut = len(whole) - outer - (len(self.base_dist.event_shape) - inner)
        super().__init__(whole[:cut], whole[cut:], validate_args=validate_args)

    def _expand_into(self, new, batch) -> None:
        super()._expand_into(new, batch)
        whole = ComposeTransform(self.transforms).inverse_shape(
            batch + self.event_shape
        )
        new.transforms = self.transforms
        new.base_dist = _fitted(self.base_dist, whole, 0)

    has_rsample = of("base_dist", "has_rsample")

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        inner = self.transforms[-1].codomain
        more = len(self.event_shape) - inner.event_dim
        return constraints.independent(inner, more) if more > 0 else inner

    def sample(self, sample_shape=()):
        """Transformed samples, without gradient."""
        with taeda.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        """Transformed samples, with gradient."""
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, value):
        """(transform, x, y) of each step from a value to that of the base."""
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            yield transform, x, value
            value = x

    def log_prob(self, value):
        """The base's density over the Jacobians of the transforms."""
        if self._validate_args:
            self._validate_sample(value)
        rank, slopes, x = len(self.event_shape), [], value
        for transform, x, y in self._backward(value):
            inner = transform.domain.event_dim
            rank += inner - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            slopes.append(_sum_rightmost(slope, rank - inner))
        density = self.base_dist.log_prob(x)
        density = _sum_rightmost(density, rank - len(self.base_dist.event_shape))
        return density - sum(slopes)

    def _monotonize_cdf(self, value):
        # A falling transform turns the distribution function around.
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return value
        return 0.5 + sign * (value - 0.5)

    def cdf(self, value):
        """The base's, at the value that the transforms came from."""
        for _, x, _ in self._backward(value):
            value = x
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        """The base's, transformed."""
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
