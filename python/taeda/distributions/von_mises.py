"""The von Mises distribution."""

from __future__ import annotations

from taeda._compat import absent_class
from taeda.distributions.distribution import Distribution

__all__ = ["VonMises"]

VonMises = absent_class("distributions.VonMises", Distribution)
