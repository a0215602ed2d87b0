"""Distributions of the exponential family."""

from __future__ import annotations

import taeda
from taeda.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """p(x; t) = exp(<T(x), t> - A(t) + k(x)); A's gradient gives the entropy."""

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self):
        """A(t) - <t, A'(t)> - E k(x)."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with taeda.enable_grad():
            log_normalizer = self._log_normalizer(*params)
            total = log_normalizer.sum()
        gradients = taeda.autograd.grad(total, params, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape((*self._batch_shape, -1)).sum(
                -1
            )
        return result
