"""Normal vectors with a covariance W W^T + D."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from taeda.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _capacitance(factor, diagonal):
    """The Cholesky factor of I + W^T D^-1 W."""
    scaled = factor.mT / diagonal.unsqueeze(-2)
    k = taeda.matmul(scaled, factor).contiguous()
    k.view(-1, k.size(-1) ** 2)[:, :: k.size(-1) + 1] += 1
    return taeda.linalg.cholesky(k)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance cov_factor cov_factor^T + diag(cov_diag).

    Args:
        loc: the mean.
        cov_factor: few columns.
        cov_diag: positive.
    """

    arg_constraints = constraints._regions(
        loc="real_vector",
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc, cov_factor, cov_diag, validate_args: bool | None = None
    ) -> None:
        event = loc.shape[-1:] if loc.dim() else None
        if event is None:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event[0]} x m"
            )
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = taeda.broadcast_shapes(
            loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        )
        self.loc = loc.expand(batch + event)
        self.cov_diag = cov_diag.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _capacitance(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        shape = taeda.Size(batch_shape)
        whole = shape + self.event_shape
        new.loc, new.cov_diag = self.loc.expand(whole), self.cov_diag.expand(whole)
        new.cov_factor = self.cov_factor.expand(whole + self.cov_factor.shape[-1:])
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        super(LowRankMultivariateNormal, new).__init__(
            shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        variance = variance + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        whole = w @ w.mT + taeda.diag_embed(self._unbroadcasted_cov_diag)
        return whole.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        return taeda.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        w, d = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        a = taeda.linalg.solve_triangular(
            self._capacitance_tril, w.mT / d.unsqueeze(-2), upper=False
        )
        whole = taeda.diag_embed(d.reciprocal()) - a.mT @ a
        return whole.expand(self._batch_shape + self._event_shape * 2)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        narrow = shape[:-1] + self.cov_factor.shape[-1:]
        options = {"dtype": self.loc.dtype, "device": self.loc.device}
        eps_w = _standard_normal(narrow, **options)
        eps_d = _standard_normal(shape, **options)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, eps_w)
            + self._unbroadcasted_cov_diag.sqrt() * eps_d
        )

    def _log_det(self):
        half = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * half + self._unbroadcasted_cov_diag.log().sum(-1)

    def _distance(self, x):
        w, d = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        projected = _batch_mv(w.mT / d.unsqueeze(-2), x)
        plain = (x.pow(2) / d).sum(-1)
        return plain - _batch_mahalanobis(self._capacitance_tril, projected)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        distance = self._distance(value - self.loc)
        return -0.5 * (constant + self._log_det() + distance)

    def entropy(self):
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
