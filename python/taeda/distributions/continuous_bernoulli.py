"""ContinuousBernoulli, which is not there yet."""

from __future__ import annotations

from taeda._compat import absent_class
from taeda.distributions.distribution import Distribution

__all__ = ["ContinuousBernoulli"]

ContinuousBernoulli = absent_class("distributions.ContinuousBernoulli", Distribution)
