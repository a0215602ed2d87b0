"""Distributions of vectors and matrices with a covariance."""

from __future__ import annotations

import math
import warnings
from functools import partial
from numbers import Number

import taeda

from . import constraints
from ._declare import Expanding, formula, in_double, lazy, parameter, wide
from ._gamma_family import Beta, Chi2
from .constraints import greater_than, positive, positive_definite, real, real_vector
from .distribution import Distribution, ExponentialFamily
from .utils import _standard_normal, broadcast_all

_batch_mv = lambda matrices, vectors: (matrices @ vectors.unsqueeze(-1)).squeeze(-1)
_solve_lower = partial(taeda.linalg.solve_triangular, upper=False)


def _batch_mahalanobis(factor, vectors):
    """x^T (L L^T)^-1 x for each vector, batches broadcast."""
    return (_solve_lower(factor, vectors.unsqueeze(-1)) ** 2).sum((-2, -1))


def _precision_to_scale_tril(precision):
    # P = U U^T with U upper, from the factor of the flipped matrix; then L = U^-T.
    lower = taeda.linalg.cholesky(precision.flip(-2, -1)).flip(-2, -1).mT
    return _solve_lower(lower, taeda.eye(lower.shape[-1]).to(lower))


# log det of a triangular matrix: half of that of L L^T
half_log_det = lambda factor: factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


# For each form of the covariance: how its lower Cholesky factor follows from it, and it
# from the factor.
_FORMS = {
    "covariance_matrix": (taeda.linalg.cholesky, lambda f: f @ f.mT),
    "precision_matrix": (_precision_to_scale_tril, taeda.cholesky_inverse),
    "scale_tril": (lambda matrix: matrix, lambda f: f),
}


def _member(name: str):
    """A form of the covariance, with the batch's dims."""
    made = _FORMS[name][1]
    return lazy(lambda f, batch_shape: made(f).expand(*batch_shape, *f.shape[-2:]))


def _forms():
    """Parameters: one of the forms."""
    form = "positive-definite; or one of the next two in place of it"
    yield parameter("v", positive_definite, form, default=None)
    yield parameter("i", positive_definite, "its inverse", default=None)
    factor = "its lower Cholesky factor"
    yield parameter("l", constraints.lower_cholesky, factor, default=None)


class Scattered(Expanding):
    """Base of distributions with a covariance, given in one of three forms.

    `_refusal` is the error where not exactly one is given.
    """

    _symbols = {"f": "_unbroadcasted_scale_tril"}
    _kept = ("_unbroadcasted_scale_tril",)
    _refusal: type[Exception] = ValueError
    covariance_matrix, precision_matrix, scale_tril = map(_member, _FORMS)
    _half_log_det = formula(lambda f: half_log_det(f))

    def _form(self, given: dict) -> tuple[str, object]:
        """The name and matrix of the only form that was given."""
        forms = [(n, given[n]) for n in _FORMS if given[n] is not None]
        if len(forms) != 1:
            raise self._refusal(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        name, matrix = forms[0]
        if matrix.dim() < 2:
            shown = name if self._refusal is ValueError else "scale_tril"
            raise ValueError(
                f"{shown} must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        return name, matrix

    def _adopt(self, validate_args, **given) -> None:
        name, matrix = self._form(given)
        given = {n: value for n, value in given.items() if n not in _FORMS or n == name}
        super()._adopt(validate_args, **given)
        # After the check, which names what a factorization would trip over.
        self._unbroadcasted_scale_tril = _FORMS[name][0](matrix)


class NormalVectors(Expanding, support=real_vector):
    """Base of normal vectors, from `_distance` and `_half_log_det`."""

    mean = mode = formula(lambda loc: loc)
    log_prob = formula(lambda x, loc, _nats, _distance: -_nats(_distance(x - loc)))
    # That of the mean exponent.
    entropy = lambda self: self._nats(self._event_shape[0]).expand(self._batch_shape)

    def _nats(self, quadratic):
        """Minus the logarithm of the density with this term in its exponent."""
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return 0.5 * (quadratic + constant) + self._half_log_det()


class MultivariateNormal(NormalVectors, Scattered):
    """Normal vectors with a covariance.

    Raises:
        ValueError: not exactly one form of the covariance, or too few dims.
    """

    loc = parameter("m", real_vector, "the mean")
    covariance_matrix, precision_matrix, scale_tril = _forms()
    variance = lambda f, m: (f**2).sum(-1).expand_as(m)
    # S with S S^T the covariance.
    _root = lambda f: f
    # x^T S x, S the inverse of the covariance.
    _distance = lambda offset, f: _batch_mahalanobis(f, offset)

    def rsample(shape, f, m):
        return m + _batch_mv(f, _standard_normal(shape, m.dtype, m.device))


class LowRankMultivariateNormal(NormalVectors):
    """Normal vectors with the covariance cov_factor cov_factor^T + diag(cov_diag).

    All that is needed of it follows from C = I + W^T D^-1 W, as small as W has columns:
    its determinant by Sylvester's theorem, its inverse by Woodbury's identity.

    Raises:
        ValueError: the shapes do not fit.
    """

    loc = parameter("m", real_vector, "the mean")
    cov_factor = parameter("w", constraints.independent(real, 2), "W, with few columns")
    cov_diag = parameter("d", constraints.independent(positive, 1), "D's diagonal")
    _symbols = {
        "factor": "_unbroadcasted_cov_factor",
        "diag": "_unbroadcasted_cov_diag",
        "c": "_capacitance_tril",
    }
    _kept = tuple(_symbols.values())
    _symbols["v"] = "covariance_matrix"
    # W^T D^-1
    _weighted = lambda factor, diag: factor.mT / diag.unsqueeze(-2)
    variance = lazy(lambda w, d: (w**2).sum(-1) + d)
    covariance_matrix = lazy(lambda w, d: w @ w.mT + d.diag_embed())
    scale_tril = lazy(lambda v: taeda.linalg.cholesky(v))
    _inner = lambda c, _weighted: _solve_lower(c, _weighted)
    precision_matrix = lazy(lambda d, _inner: (1 / d).diag_embed() - _inner.mT @ _inner)
    # S with S S^T the covariance: W beside the root of D.
    _root = lambda w, d: taeda.cat([w, d.sqrt().diag_embed()], -1)
    _half_log_det = lambda c, diag: half_log_det(c) + 0.5 * diag.log().sum(-1)

    def _adopt(self, validate_args, loc, cov_factor, cov_diag) -> None:
        _, event = self._cut("loc", loc)
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event[0]} x m"
            )
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        inner = self._weighted @ cov_factor
        self._capacitance_tril = taeda.linalg.cholesky(
            inner + taeda.eye(inner.shape[-1]).to(inner)
        )
        super()._adopt(validate_args, loc=loc, cov_factor=cov_factor, cov_diag=cov_diag)

    def _distance(offset, diag, c, _weighted):
        # x^T (W W^T + D)^-1 x
        inside = _batch_mahalanobis(c, _batch_mv(_weighted, offset))
        return (offset**2 / diag).sum(-1) - inside

    def rsample(shape, m, factor, diag):
        few = _standard_normal(shape[:-1] + factor.shape[-1:], m.dtype, m.device)
        many = _standard_normal(shape, m.dtype, m.device)
        return m + _batch_mv(factor, few) + diag.sqrt() * many


class LKJCholesky(Expanding, support=constraints.corr_cholesky):
    """Lower Cholesky factors L of correlation matrices with the density proportional to
    det(L L^T)^(concentration - 1) over the matrices.

    D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based
    on vines and extended onion method", 2009; samples are made row by row (the onion).

    Raises:
        ValueError: fewer than 2 rows.
    """

    dim = parameter("n", None, "rows of a matrix, at least 2")
    concentration = parameter("a", positive, "1 is uniform, more: near I", default=1.0)

    @lazy
    def _beta(n, a):
        # Of the squared length of each row left of the diagonal; the first has none.
        before = taeda.arange(-1, n - 1, dtype=a.dtype, device=a.device)
        before = 0.5 * before.clamp(min=0)
        return Beta(before + 0.5, a.unsqueeze(-1) + 0.5 * (n - 2) - before)

    @wide
    def log_prob(x, n, a):
        # prod of L_kk^(n - k + 2 (a - 1)), k > 1; the norm is a product over rows
        # (section 3.2 of the paper).
        k, a = taeda.arange(1, n, device=a.device).to(a), a.unsqueeze(-1)
        alpha, diagonal = a + 0.5 * (n - 1), x.diagonal(dim1=-2, dim2=-1)
        norm = (alpha - 0.5 * k).lgamma() - alpha.lgamma() + 0.5 * k * math.log(math.pi)
        return ((n - 3 - k + 2 * a) * diagonal[..., 1:].log() - norm).sum(-1)

    def _adopt(self, validate_args, concentration) -> None:
        if self.dim < 2:
            raise ValueError(
                "Expected dim to be an integer greater than or equal to 2. "
                f"Found dim={self.dim}."
            )
        (self.concentration,) = broadcast_all(concentration)
        batch, event = self.concentration.shape, (self.dim, self.dim)
        Distribution.__init__(self, batch, event, validate_args)

    def sample(shape, size, _beta):
        squares = _beta.sample(size).unsqueeze(-1)
        like = {"dtype": squares.dtype, "device": squares.device}
        direction = taeda.randn(shape, **like).tril(-1)
        length = direction.norm(dim=-1, keepdim=True)
        length[..., 0, :] = 1
        rows = squares.sqrt() * direction / length
        rest = (1 - (rows * rows).sum(-1)).clamp(min=taeda.finfo(rows.dtype).tiny)
        return rows + rest.sqrt().diag_embed()


def _halves(x, n: int):
    """x - k / 2 for k = 0 to n - 1, along a new last dim."""
    steps = taeda.arange(n, dtype=x.dtype, device=x.device)
    return x.unsqueeze(-1) - 0.5 * steps


def _log_gamma(x, n: int):
    """log of the multivariate gamma function (T. Anderson, 2003, section 7.2)."""
    constant = 0.25 * n * (n - 1) * math.log(math.pi)
    return _halves(x, n).lgamma().sum(-1) + constant


class Wishart(Scattered, ExponentialFamily, support=positive_definite):
    """Sums of x x^T over df normal vectors x with a covariance.

    Raises:
        AssertionError: not exactly one form of the covariance.
        ValueError: too few dims, or too few degrees of freedom.
    """

    covariance_matrix, precision_matrix, scale_tril = _forms()
    df = parameter("df", lambda n: greater_than(n - 1), "degrees of freedom, > n - 1")
    has_rsample = True
    _refusal = AssertionError
    _symbols = {"n": "_n", "d": "_scalar", "diagonal": "_diagonal", "half": "_half"}
    _n = lambda event_shape: event_shape[-1]
    # df with dims for a matrix
    _scalar = lambda df: df[..., None, None]
    _diagonal = lambda v: v.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    _half = lambda f: half_log_det(f)
    mean = lambda d, v: d * v
    # NaN where the density has a pole.
    mode = lambda d, n, v: taeda.where(d > n + 1, d - n - 1, math.nan) * v
    variance = lambda d, v, diagonal: d * (v * v + diagonal * diagonal.mT)
    _dist_chi2 = lazy(lambda df, n: Chi2(2 * _halves(0.5 * df, n), validate_args=False))
    # t = (-P / 2, (df - n - 1) / 2) of T = (X, log det X)
    _natural_params = lambda i, df, n: (-0.5 * i, 0.5 * (df - n - 1))
    _mean_carrier_measure = 0

    def _adopt(self, validate_args, df, **forms) -> None:
        _, matrix = self._form(forms)
        n = matrix.shape[-1]
        degrees = matrix.new_tensor(df) if isinstance(df, Number) else df
        if bool((degrees <= n - 1).any()):
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}."
            )
        if bool((degrees < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur "
                "for ndim - 1 < df < ndim.",
                stacklevel=3,
            )
        super()._adopt(validate_args, df=degrees, **forms)

    def log_prob(x, df, n, f):
        trace = taeda.cholesky_solve(x, f).diagonal(dim1=-2, dim2=-1).sum(-1)
        powers = 0.5 * ((df - n - 1) * taeda.linalg.slogdet(x).logabsdet - trace)
        norm = df * (0.5 * n * math.log(2) + half_log_det(f))
        return powers - norm - in_double(_log_gamma)(0.5 * df, n)

    @wide
    def entropy(df, n, half):
        a, gap = 0.5 * df, 0.5 * (df - n - 1)
        volume = (n + 1) * (0.5 * n * math.log(2) + half)
        return volume + _log_gamma(a, n) - gap * _halves(a, n).digamma().sum(-1) + a * n

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

    @staticmethod
    def _log_normalizer(x, y):
        n = x.shape[-1]
        half = y + 0.5 * (n + 1)
        volume = n * math.log(2) - taeda.linalg.slogdet(-2 * x).logabsdet
        return half * volume + _log_gamma(half, n)
