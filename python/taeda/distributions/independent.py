"""Batch dims as event dims."""

from __future__ import annotations

from taeda.distributions import constraints
from taeda.distributions._declare import Expanding, of, parameters
from taeda.distributions.utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Expanding):
    """A distribution whose last batch dims count as dims of one event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dims.

    Raises:
        ValueError: there are not that many batch dims.
    """

    arg_constraints = parameters()
    _nested = ("base_dist",)
    _kept = ("reinterpreted_batch_ndims",)

    def __init__(
        self,
        base_distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        batch = base_distribution.batch_shape
        cut = len(batch) - reinterpreted_batch_ndims
        if cut < 0:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= "
                "len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(batch)}"
            )
        event = batch[cut:] + base_distribution.event_shape
        super().__init__(batch[:cut], event, validate_args=validate_args)

    mean, mode, variance, sample, rsample, has_rsample = (
        of("base_dist", name)
        for name in ("mean", "mode", "variance", "sample", "rsample", "has_rsample")
    )

    @property
    def has_enumerate_support(self) -> bool:
        """Whether there is `enumerate_support`."""
        return not self.reinterpreted_batch_ndims and bool(
            self.base_dist.has_enumerate_support
        )

    @constraints.dependent_property
    def support(self):
        inner, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inner, count) if count else inner

    def _sum(self, each):
        return _sum_rightmost(each, self.reinterpreted_batch_ndims)

    def log_prob(self, value):
        """The sum over the dims that count as an event."""
        return self._sum(self.base_dist.log_prob(value))

    def entropy(self):
        """The sum over the dims that count as an event, in nats."""
        return self._sum(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True):
        """All values, where no dim was reinterpreted."""
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Enumeration over cartesian product is not implemented"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        own = f"{self.base_dist}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__}({own})"
