"""Probabilities by stick breaking of normal numbers."""

from __future__ import annotations

from taeda.distributions import Independent, constraints
from taeda.distributions.normal import Normal
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """K probabilities, from K - 1 normal numbers.

    Args:
        loc: their means.
        scale: their standard deviations.
    """

    arg_constraints = constraints._regions(loc="real", scale="positive")
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LogisticNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def _normal(self):
        base = self.base_dist
        return base.base_dist if isinstance(base, Independent) else base

    @property
    def loc(self):
        """The means of the normal numbers."""
        return self._normal.loc

    @property
    def scale(self):
        """The standard deviations of the normal numbers."""
        return self._normal.scale
