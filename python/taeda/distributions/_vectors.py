"""Distributions of vectors and matrices with a covariance."""

from __future__ import annotations

import math
import warnings
from numbers import Number

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import (
    Expanding,
    dependent_parameters,
    formula,
    in_double,
    lazy,
    parameters,
)
from taeda.distributions._gamma_family import Beta, Chi2
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import _standard_normal, broadcast_all


def _batch_mv(matrices, vectors):
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def _solve_lower(factor, right):
    """L^-1 of a right side, batches broadcast."""
    batch = taeda.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    factor, right = (m.expand(*batch, *m.shape[-2:]) for m in (factor, right))
    return taeda.linalg.solve_triangular(factor, right, upper=False)


def _batch_mahalanobis(factor, vectors):
    """x^T (L L^T)^-1 x for each vector, batches broadcast."""
    return (_solve_lower(factor, vectors.unsqueeze(-1)) ** 2).sum((-2, -1))


def _eye_like(matrix):
    n = matrix.shape[-1]
    return taeda.eye(n, dtype=matrix.dtype, device=matrix.device)


def _precision_to_scale_tril(precision):
    # P = U U^T with U upper, from the factor of the flipped matrix; then L = U^-T.
    upper = taeda.linalg.cholesky(precision.flip(-2, -1)).flip(-2, -1)
    return _solve_lower(upper.mT, _eye_like(precision))


# How the lower Cholesky factor of the covariance follows from each form of it.
_FACTORS = {
    "covariance_matrix": lambda matrix: taeda.linalg.cholesky(matrix),
    "precision_matrix": _precision_to_scale_tril,
    "scale_tril": lambda matrix: matrix,
}


def half_log_det(factor):
    """log det of a triangular matrix: half of that of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class Scattered(Expanding):
    """Base of distributions with a covariance, given in one of three forms."""

    covariance_matrix = lazy(
        lambda self, _unbroadcasted_scale_tril: self._whole(
            _unbroadcasted_scale_tril @ _unbroadcasted_scale_tril.mT
        )
    )
    precision_matrix = lazy(
        lambda self, _unbroadcasted_scale_tril: self._whole(
            taeda.cholesky_inverse(_unbroadcasted_scale_tril)
        )
    )
    scale_tril = lazy(
        lambda self, _unbroadcasted_scale_tril: self._whole(_unbroadcasted_scale_tril)
    )

    def _whole(self, matrix):
        n = matrix.shape[-1]
        return matrix.expand(*self._batch_shape, n, n)

    @staticmethod
    def _form(error, **forms) -> tuple[str, object]:
        """The name and matrix of the only form that was given."""
        given = [(name, m) for name, m in forms.items() if m is not None]
        if len(given) != 1:
            raise error(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        if given[0][1].dim() < 2:
            name = given[0][0] if error is ValueError else "scale_tril"
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        return given[0]

    def _adopt_form(self, name: str, matrix, batch) -> None:
        setattr(self, name, matrix.expand(*batch, *matrix.shape[-2:]))

    def _factorize(self, name: str, matrix) -> None:
        self._unbroadcasted_scale_tril = _FACTORS[name](matrix)


class NormalVectors(Expanding):
    """Base of normal vectors, from `_distance` and `_half_log_det`."""

    support = constraints.real_vector
    has_rsample = True
    mean = mode = formula(lambda loc: loc)

    def _minus_log(self, quadratic):
        """Minus the logarithm of the density with this term in its exponent."""
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return 0.5 * (quadratic + constant) + self._half_log_det()

    def entropy(self):
        """The entropy, in nats."""
        return self._minus_log(self._event_shape[0]).expand(self._batch_shape)

    def log_prob(self, value):
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        return -self._minus_log(self._distance(value - self.loc))


class MultivariateNormal(NormalVectors, Scattered):
    """Normal vectors with a covariance.

    Args:
        loc: the mean.
        covariance_matrix: positive-definite; or one of the next two in place of it.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.

    Raises:
        ValueError: not exactly one form of the covariance, or too few dims.
    """

    _forms = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    arg_constraints = parameters("m c i l", loc=constraints.real_vector, **_forms)
    _kept = ("_unbroadcasted_scale_tril",)

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
        name, matrix = self._form(
            ValueError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = taeda.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self._adopt_form(name, matrix, batch)
        self.loc = loc.expand(*batch, -1)
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        # After the check, which names what a factorization would trip over.
        self._factorize(name, matrix)

    variance = formula(
        lambda loc, _unbroadcasted_scale_tril: (
            (_unbroadcasted_scale_tril**2).sum(-1).expand_as(loc)
        )
    )

    def _root(self):
        """S with S S^T the covariance."""
        return self._unbroadcasted_scale_tril

    def _half_log_det(self):
        return half_log_det(self._unbroadcasted_scale_tril)

    def _distance(self, offset):
        """x^T S x, S the inverse of the covariance."""
        return _batch_mahalanobis(self._unbroadcasted_scale_tril, offset)

    rsample = formula(
        lambda shape, loc, _unbroadcasted_scale_tril: (
            loc
            + _batch_mv(
                _unbroadcasted_scale_tril,
                _standard_normal(shape, loc.dtype, loc.device),
            )
        )
    )


def _check(loc, cov_factor, cov_diag):
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event = loc.shape[-1:]
    if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
        raise ValueError(
            f"cov_factor must be a batch of matrices with shape {event[0]} x m"
        )
    if cov_diag.shape[-1:] != event:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
    return event


class LowRankMultivariateNormal(NormalVectors):
    """Normal vectors with the covariance cov_factor cov_factor^T + diag(cov_diag).

    All that is needed of it follows from C = I + W^T D^-1 W, as small as W has columns:
    its determinant by Sylvester's theorem, its inverse by Woodbury's identity.

    Args:
        loc: the mean.
        cov_factor: W, with few columns.
        cov_diag: D's diagonal, positive.

    Raises:
        ValueError: the shapes do not fit.
    """

    arg_constraints = parameters(
        "m w d",
        loc=constraints.real_vector,
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )
    _kept = (
        "_unbroadcasted_cov_factor",
        "_unbroadcasted_cov_diag",
        "_capacitance_tril",
    )

    def __init__(
        self, loc, cov_factor, cov_diag, validate_args: bool | None = None
    ) -> None:
        event = _check(loc, cov_factor, cov_diag)
        batch = taeda.broadcast_shapes(
            loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        )
        self.loc = loc.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, -1, -1)
        self.cov_diag = cov_diag.expand(*batch, -1)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        c = self._weighted @ cov_factor
        self._capacitance_tril = taeda.linalg.cholesky(c + _eye_like(c))
        super().__init__(batch, event, validate_args=validate_args)

    # W^T D^-1
    _weighted = formula(
        lambda _unbroadcasted_cov_factor, _unbroadcasted_cov_diag: (
            _unbroadcasted_cov_factor.mT / _unbroadcasted_cov_diag.unsqueeze(-2)
        )
    )
    variance = lazy(lambda cov_factor, cov_diag: (cov_factor**2).sum(-1) + cov_diag)
    covariance_matrix = lazy(
        lambda cov_factor, cov_diag: cov_factor @ cov_factor.mT + cov_diag.diag_embed()
    )
    scale_tril = lazy(
        lambda covariance_matrix: taeda.linalg.cholesky(covariance_matrix)
    )

    def _precision(self):
        half = _solve_lower(self._capacitance_tril, self._weighted)
        return (1 / self.cov_diag).diag_embed() - half.mT @ half

    precision_matrix = lazy(lambda _precision: _precision())

    def _root(self):
        """S with S S^T the covariance: W beside the root of D."""
        diagonal = self.cov_diag.sqrt().diag_embed()
        return taeda.cat([self.cov_factor, diagonal], -1)

    def _half_log_det(self):
        diagonal = self._unbroadcasted_cov_diag.log().sum(-1)
        return half_log_det(self._capacitance_tril) + 0.5 * diagonal

    def _distance(self, offset):
        """x^T (W W^T + D)^-1 x."""
        plain = (offset**2 / self._unbroadcasted_cov_diag).sum(-1)
        inside = _batch_mv(self._weighted, offset)
        return plain - _batch_mahalanobis(self._capacitance_tril, inside)

    def rsample(self, sample_shape=()):
        """Samples, differentiable by all parameters."""
        shape = self._extended_shape(sample_shape)
        like = (self.loc.dtype, self.loc.device)
        few = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], *like)
        many = _standard_normal(shape, *like)
        spread = self._unbroadcasted_cov_diag.sqrt() * many
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, few) + spread


@in_double
def _log_density(diagonal, concentration):
    """Of L, from its diagonal: prod of L_kk^(n - k + 2 (concentration - 1)), k > 1.

    The norm is a product over rows (section 3.2 of the paper).
    """
    n = diagonal.shape[-1]
    rows = taeda.arange(1, n, dtype=diagonal.dtype, device=diagonal.device)
    alpha = concentration.unsqueeze(-1) + 0.5 * (n - 1)
    powers = n - 1 - rows + 2 * (concentration.unsqueeze(-1) - 1)
    norm = (alpha - 0.5 * rows).lgamma() - alpha.lgamma()
    norm = norm + 0.5 * rows * math.log(math.pi)
    return (powers * diagonal[..., 1:].log() - norm).sum(-1)


class LKJCholesky(Expanding):
    """Lower Cholesky factors L of correlation matrices with the density proportional to
    det(L L^T)^(concentration - 1) over the matrices.

    D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based
    on vines and extended onion method", 2009; samples are made row by row (the onion).

    Args:
        dim: rows of a matrix, at least 2.
        concentration: 1 is uniform over correlation matrices, more is nearer to I.

    Raises:
        ValueError: fewer than 2 rows.
    """

    arg_constraints = parameters("a", concentration=constraints.positive)
    support = constraints.corr_cholesky
    _nested = ("_beta",)
    _kept = ("dim",)

    def __init__(
        self, dim: int, concentration=1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                "Expected dim to be an integer greater than or equal to 2. "
                f"Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Of the squared length of each row left of the diagonal; the first has none.
        like = self.concentration
        before = taeda.arange(-1, dim - 1, dtype=like.dtype, device=like.device)
        before = 0.5 * before.clamp(min=0)
        end = like.unsqueeze(-1) + 0.5 * (dim - 2)
        self._beta = Beta(before + 0.5, end - before)
        super().__init__(like.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape=()):
        """Lower triangular matrices with rows of the length 1, without gradient."""
        with taeda.no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            like = {"dtype": squares.dtype, "device": squares.device}
            direction = taeda.randn(shape, **like).tril(-1)
            length = direction.norm(dim=-1, keepdim=True)
            length[..., 0, :] = 1
            rows = squares.sqrt() * direction / length
            rest = (1 - (rows * rows).sum(-1)).clamp(min=taeda.finfo(rows.dtype).tiny)
            return rows + rest.sqrt().diag_embed()

    def log_prob(self, value):
        """The logarithm of the density over factors L."""
        if self._validate_args:
            self._validate_sample(value)
        return _log_density(value.diagonal(dim1=-2, dim2=-1), self.concentration)


def _halves(x, n: int):
    """x - k / 2 for k = 0 to n - 1, along a new last dim."""
    steps = taeda.arange(n, dtype=x.dtype, device=x.device)
    return x.unsqueeze(-1) - 0.5 * steps


def _log_gamma(x, n: int):
    """log of the multivariate gamma function (T. Anderson, 2003, section 7.2)."""
    constant = 0.25 * n * (n - 1) * math.log(math.pi)
    return _halves(x, n).lgamma().sum(-1) + constant


@in_double
def _entropy(df, half_log_det, n: int):
    a, gap = 0.5 * df, 0.5 * (df - n - 1)
    volume = (n + 1) * (0.5 * n * math.log(2) + half_log_det)
    return volume + _log_gamma(a, n) - gap * _halves(a, n).digamma().sum(-1) + a * n


class Wishart(Scattered, ExponentialFamily):
    """Sums of x x^T over df normal vectors x with a covariance.

    Args:
        df: degrees of freedom, above n - 1 for n rows.
        covariance_matrix: positive-definite; or one of the next two in place of it.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.

    Raises:
        AssertionError: not exactly one form of the covariance.
        ValueError: too few dims, or too few degrees of freedom.
    """

    arg_constraints = dependent_parameters(
        lambda self: {
            **MultivariateNormal._forms,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        },
        df=0,
        covariance_matrix=2,
        precision_matrix=2,
        scale_tril=2,
        _unbroadcasted_scale_tril=2,
    )
    support = constraints.positive_definite
    has_rsample = True
    _nested = ("_dist_chi2",)

    def __init__(
        self,
        df,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._form(
            AssertionError,
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        n = matrix.shape[-1]
        plain = isinstance(df, Number)
        degrees = matrix.new_tensor(df) if plain else df
        batch = taeda.broadcast_shapes(matrix.shape[:-2], degrees.shape)
        self.df = degrees.expand(batch)
        if bool((degrees <= n - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}."
            )
        if bool((degrees < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur "
                "for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._adopt_form(name, matrix, batch)
        super().__init__(batch, (n, n), validate_args=validate_args)
        self._factorize(name, matrix)
        self._dist_chi2 = Chi2(2 * _halves(0.5 * self.df, n))

    _n = formula(lambda event_shape: event_shape[-1])
    # df with dims for a matrix
    _scalar = formula(lambda df: df[..., None, None])
    mean = formula(lambda _scalar, covariance_matrix: _scalar * covariance_matrix)

    @property
    def mode(self):
        """The most probable matrix; NaN where the density has a pole."""
        excess = self._scalar - self._n - 1
        return taeda.where(excess > 0, excess, math.nan) * self.covariance_matrix

    @property
    def variance(self):
        """Of each element."""
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self._scalar * (v * v + d.unsqueeze(-1) * d.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=()):
        """L A A^T L^T; A has roots of chi-squared numbers on its diagonal and normal
        numbers below (M. Bartlett, "On the theory of statistical regression", 1933)."""
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=taeda.finfo(roots.dtype).eps)
        shape = self._extended_shape(sample_shape)
        below = taeda.randn(shape, dtype=roots.dtype, device=roots.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + roots.diag_embed())
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction: int | None = None):
        """Samples, differentiable by all parameters.

        A sample that rounding made singular is drawn anew, at most
        `max_try_correction` times (10), with a warning.
        """
        sample = self._bartlett_sampling(sample_shape)
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            if attempt == 0:
                warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling(sample_shape)
            sample = taeda.where(singular[..., None, None], again, sample)
        return sample

    def entropy(self):
        """The entropy, in nats."""
        root = half_log_det(self._unbroadcasted_scale_tril)
        return _entropy(self.df, root, self._n)

    def log_prob(self, value):
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        n, factor = self._n, self._unbroadcasted_scale_tril
        trace = taeda.cholesky_solve(value, factor)
        trace = trace.diagonal(dim1=-2, dim2=-1).sum(-1)
        log_det = taeda.linalg.slogdet(value).logabsdet
        norm = self.df * (0.5 * n * math.log(2) + half_log_det(factor))
        powers = 0.5 * ((self.df - n - 1) * log_det - trace)
        return powers - norm - in_double(_log_gamma)(0.5 * self.df, n)

    # t = (-P / 2, (df - n - 1) / 2) of T = (X, log det X)
    _natural_params = formula(
        lambda precision_matrix, df, _n: (-0.5 * precision_matrix, 0.5 * (df - _n - 1))
    )
    _mean_carrier_measure = 0

    def _log_normalizer(self, x, y):
        n = self._n
        half = y + 0.5 * (n + 1)
        volume = n * math.log(2) - taeda.linalg.slogdet(-2 * x).logabsdet
        return half * volume + _log_gamma(half, n)
