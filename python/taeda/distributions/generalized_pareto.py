"""GeneralizedPareto, which is not there yet."""

from __future__ import annotations

from taeda._compat import absent_class
from taeda.distributions.distribution import Distribution

__all__ = ["GeneralizedPareto"]

GeneralizedPareto = absent_class("distributions.GeneralizedPareto", Distribution)
