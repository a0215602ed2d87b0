"""The normal distribution of vectors."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions.distribution import Distribution
from taeda.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrices, vectors):
    return taeda.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, vectors):
    """x^T (L L^T)^-1 x for each vector, with batches broadcast."""
    batch = taeda.broadcast_shapes(factor.shape[:-2], vectors.shape[:-1])
    n = vectors.size(-1)
    solved = taeda.linalg.solve_triangular(
        factor.expand(batch + (n, n)),
        vectors.expand(batch + (n,)).unsqueeze(-1),
        upper=False,
    )
    return solved.pow(2).sum([-2, -1])


def _precision_to_scale_tril(precision):
    # The factor of the inverse, from that of the flipped matrix.
    factor = taeda.linalg.cholesky(taeda.flip(precision, (-2, -1)))
    inverse = taeda.transpose(taeda.flip(factor, (-2, -1)), -2, -1)
    one = taeda.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return taeda.linalg.solve_triangular(inverse, one, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors with a covariance.

    Args:
        loc: the mean.
        covariance_matrix: positive-definite; or one of the next two in place of it.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.
    """

    arg_constraints = constraints._regions(
        loc="real_vector",
        covariance_matrix="positive_definite",
        precision_matrix="positive_definite",
        scale_tril="lower_cholesky",
    )
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "scale_tril": scale_tril,
            "precision_matrix": precision_matrix,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        batch = taeda.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self.loc = loc.expand(batch + (-1,))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = taeda.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        shape = taeda.Size(batch_shape)
        new.loc = self.loc.expand(shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                matrix = self.__dict__[name]
                setattr(new, name, matrix.expand(shape + self.event_shape * 2))
        super(MultivariateNormal, new).__init__(
            shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._whole(taeda.matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return self._whole(taeda.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return variance.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self):
        factor = self._unbroadcasted_scale_tril
        return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_det()

    def entropy(self):
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + self._half_log_det()).expand(self._batch_shape)
