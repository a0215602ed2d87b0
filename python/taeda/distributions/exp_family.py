"""Distributions of the exponential family."""

from __future__ import annotations

import taeda
from taeda.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


def mean_statistics(family):
    """Natural parameters t, A(t) with its graph, and its gradient E T(x)."""
    natural = [t.detach().requires_grad_() for t in family._natural_params]
    with taeda.enable_grad():
        normalizer = family._log_normalizer(*natural)
        slopes = taeda.autograd.grad(normalizer.sum(), natural, create_graph=True)
    return natural, normalizer, slopes


def inner_product(pairs, batch: int):
    """The sum of <a, b> over pairs, over all dims behind the batch dims."""
    return sum(
        (a * b).flatten(batch).sum(-1) if a.dim() > batch else a * b for a, b in pairs
    )


class ExponentialFamily(Distribution):
    """Densities p(x; t) = exp(<T(x), t> - A(t) + k(x)) of natural parameters t.

    A subclass has `_natural_params`, `_log_normalizer` (A) and `_mean_carrier_measure`
    (E k(x)). The gradient of A is the mean of T; entropy and divergences follow
    (M. Wainwright, M. Jordan, "Graphical Models, Exponential Families, and
    Variational Inference", 2008, section 3).
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self):
        """A(t) - <t, A'(t)> - E k(x), in nats."""
        carrier = self._mean_carrier_measure
        natural, normalizer, slopes = mean_statistics(self)
        inner = inner_product(zip(natural, slopes, strict=True), len(self.batch_shape))
        return normalizer - inner - carrier
