"""Distributions of the exponential family."""

from __future__ import annotations

import taeda
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import _sum_rightmost, absent

__all__ = ["ExponentialFamily"]


def tangent(family, at):
    """A(t) + <u - t, A'(t)>: the tangent plane of A at t, over other parameters u."""
    natural = [t.detach().requires_grad_() for t in family._natural_params]
    with taeda.enable_grad():
        value = family._log_normalizer(*natural)
        slopes = taeda.autograd.grad(value.sum(), natural, create_graph=True)
    for t, u, slope in zip(natural, at, slopes, strict=True):
        own = max(t.dim() - len(family.batch_shape), 0)
        value = value + _sum_rightmost((u - t) * slope, own)
    return value


class ExponentialFamily(Distribution):
    """Densities p(x; t) = exp(<T(x), t> - A(t) + k(x)) of natural parameters t.

    A subclass has `_natural_params`, `_log_normalizer` (A) and `_mean_carrier_measure`
    (E k(x)). The gradient of A is the mean of T; entropy and divergences follow
    (M. Wainwright, M. Jordan, "Graphical Models, Exponential Families, and
    Variational Inference", 2008, section 3).
    """

    _natural_params = absent("_natural_params", "t, a tuple.", False)
    _log_normalizer = absent("_log_normalizer", "A(t).")
    _mean_carrier_measure = absent("_mean_carrier_measure", "E k(x).", False)

    def entropy(self):
        """A(t) - <t, A'(t)> - E k(x), in nats."""
        origin = [0.0] * len(self._natural_params)
        return tangent(self, origin) - self._mean_carrier_measure
