"""Distributions of vectors and matrices with a covariance."""

from __future__ import annotations

import math
import warnings
from functools import partial
from numbers import Number

import taeda

from ._declare import Expanding, declare
from ._formulas import in_double as in_double

_batch_mv = lambda matrices, vectors: (matrices @ vectors.unsqueeze(-1)).squeeze(-1)
_solve_lower = partial(taeda.linalg.solve_triangular, upper=False)


# x^T (L L^T)^-1 x for each vector, batches broadcast
_batch_mahalanobis = lambda factor, vectors: (
    _solve_lower(factor, vectors.unsqueeze(-1)) ** 2
).sum((-2, -1))


def _precision_to_scale_tril(precision):
    # P = U U^T with U upper, from the factor of the flipped matrix; then L = U^-T.
    lower = taeda.linalg.cholesky(precision.flip(-2, -1)).flip(-2, -1).mT
    return _solve_lower(lower, taeda.eye(lower.shape[-1]).to(lower))


# log det of a triangular matrix: half of that of L L^T
half_log_det = lambda factor: factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

# How the lower Cholesky factor follows from each form of the covariance.
_FACTORS = {
    "covariance_matrix": taeda.linalg.cholesky,
    "precision_matrix": _precision_to_scale_tril,
    "scale_tril": lambda matrix: matrix,
}
_with_batch = lambda matrix, batch: matrix.expand(*batch, *matrix.shape[-2:])


def _form(given: dict, refusal: type[Exception]) -> tuple[str, object]:
    """The name and matrix of the only form of a covariance that was given."""
    forms = [(n, given[n]) for n in _FACTORS if given[n] is not None]
    if len(forms) != 1:
        raise refusal(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
            "specified."
        )
    name, matrix = forms[0]
    if matrix.dim() < 2:
        shown = name if refusal is ValueError else "scale_tril"
        raise ValueError(
            f"{shown} must be at least two-dimensional, with optional leading batch "
            "dimensions"
        )
    return name, matrix


def _adopt_form(self, validate_args, **given) -> None:
    name, matrix = _form(given, self._refusal)
    given = {n: each for n, each in given.items() if n not in _FACTORS or n == name}
    Expanding._adopt(self, validate_args, **given)
    # After the check, which names what a factorization would trip over.
    self._unbroadcasted_scale_tril = _FACTORS[name](matrix)


def _halves(x, n: int):
    """x - k / 2 for k = 0 to n - 1, along a new last dim."""
    steps = taeda.arange(n, dtype=x.dtype, device=x.device)
    return x.unsqueeze(-1) - 0.5 * steps


def _log_gamma(x, n: int):
    """log of the multivariate gamma function (T. Anderson, 2003, section 7.2)."""
    return _halves(x, n).lgamma().sum(-1) + 0.25 * n * (n - 1) * math.log(math.pi)


def _adopt_low_rank(self, validate_args, loc, cov_factor, cov_diag) -> None:
    _, event = self._cut("loc", loc)
    if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
        text = f"cov_factor must be a batch of matrices with shape {event[0]} x m"
        raise ValueError(text)
    if cov_diag.shape[-1:] != event:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
    self._unbroadcasted_cov_factor = cov_factor
    self._unbroadcasted_cov_diag = cov_diag
    inner = self._weighted @ cov_factor
    inner = inner + taeda.eye(inner.shape[-1]).to(inner)
    self._capacitance_tril = taeda.linalg.cholesky(inner)
    given = {"loc": loc, "cov_factor": cov_factor, "cov_diag": cov_diag}
    Expanding._adopt(self, validate_args, **given)


def _adopt_degrees(self, validate_args, df, **forms) -> None:
    _, matrix = _form(forms, AssertionError)
    n = matrix.shape[-1]
    degrees = matrix.new_tensor(df) if isinstance(df, Number) else df
    if bool((degrees <= n - 1).any()):
        text = f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}."
        raise ValueError(text)
    if bool((degrees < n).any()):
        warnings.warn(
            "Low df values detected. Singular samples are highly likely to occur "
            "for ndim - 1 < df < ndim.",
            stacklevel=3,
        )
    _adopt_form(self, validate_args, df=degrees, **forms)


def _rsample_regular(self, sample_shape=(), max_try_correction: int | None = None):
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


TEXT = """
Scattered: base of distributions with a covariance, given in one of three forms.
`_refusal` is the error where not exactly one is given.
    _symbols is {"f": "_unbroadcasted_scale_tril"}
    _kept is ("_unbroadcasted_scale_tril",)
    _refusal, _adopt is ValueError, _adopt_form
    lazy covariance_matrix = _with_batch(f @ f.mT, batch_shape)
    lazy precision_matrix = _with_batch(taeda.cholesky_inverse(f), batch_shape)
    lazy scale_tril = _with_batch(f, batch_shape)
    _half_log_det() = half_log_det(f)

NormalVectors over real_vector: base of normal vectors, from `_distance` and
`_half_log_det`.
    mean = mode = loc
    log_prob = -_nats(_distance(x - loc))
    # That of the mean exponent. Classes derived from this one may show their vectors in
    # another `event_shape`, the shape that was given stays their number of dims.
    entropy = _nats(_event_shape[0]).expand(batch_shape)
    # Minus the logarithm of the density with this term in its exponent.
    _nats(quadratic) = 0.5 * (quadratic + constant) + _half_log_det()
        constant = _event_shape[0] * math.log(2 * math.pi)

MultivariateNormal(NormalVectors, Scattered): normal vectors with a covariance.
    Raises:
        ValueError: not exactly one form of the covariance, or too few dims.
    loc m in real_vector: the mean
    covariance_matrix v in positive_definite default None: or one of the next two
    precision_matrix i in positive_definite default None: its inverse
    scale_tril l in lower_cholesky default None: its lower Cholesky factor
    variance = (f**2).sum(-1).expand_as(m)
    # S with S S^T the covariance.
    _root() = f
    # x^T S x, S the inverse of the covariance.
    _distance(offset) = _batch_mahalanobis(f, offset)
    rsample = m + _batch_mv(f, _standard_normal(shape, m.dtype, m.device))

LowRankMultivariateNormal(NormalVectors): normal vectors with the covariance
cov_factor cov_factor^T + diag(cov_diag).
All that is needed of it follows from C = I + W^T D^-1 W, as small as W has columns:
its determinant by Sylvester's theorem, its inverse by Woodbury's identity.
    Raises:
        ValueError: the shapes do not fit.
    loc m in real_vector: the mean
    cov_factor w in independent(real, 2): W, with few columns
    cov_diag d in independent(positive, 1): D's diagonal
    _symbols is {"factor": "_unbroadcasted_cov_factor", "c": "_capacitance_tril",
        "diag": "_unbroadcasted_cov_diag", "v": "covariance_matrix"}
    _kept is "_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"
    # W^T D^-1
    _weighted = factor.mT / diag.unsqueeze(-2)
    lazy variance = (w**2).sum(-1) + d
    lazy covariance_matrix = w @ w.mT + d.diag_embed()
    lazy scale_tril = taeda.linalg.cholesky(v)
    _inner = _solve_lower(c, _weighted)
    lazy precision_matrix = (1 / d).diag_embed() - _inner.mT @ _inner
    # S with S S^T the covariance: W beside the root of D.
    _root() = taeda.cat([w, d.sqrt().diag_embed()], -1)
    _half_log_det() = half_log_det(c) + 0.5 * diag.log().sum(-1)
    _adopt is _adopt_low_rank
    _distance(offset) = (offset**2 / diag).sum(-1) - inside
        # x^T (W W^T + D)^-1 x
        inside = _batch_mahalanobis(c, _batch_mv(_weighted, offset))
    rsample = m + _batch_mv(factor, few) + diag.sqrt() * many
        few = _standard_normal(shape[:-1] + factor.shape[-1:], m.dtype, m.device)
        many = _standard_normal(shape, m.dtype, m.device)

LKJCholesky over corr_cholesky: lower Cholesky factors L of correlation matrices, the
density of which is proportional to det(L L^T)^(concentration - 1).
D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based
on vines and extended onion method", 2009; samples are made row by row (the onion).
    Raises:
        ValueError: fewer than 2 rows.
    dim n: rows of a matrix, at least 2
    concentration a in positive default 1.0: 1 is uniform, more: near I
    lazy _beta = Beta(before + 0.5, a.unsqueeze(-1) + 0.5 * (n - 2) - before)
        # Of the squared length of each row left of the diagonal; the first has none.
        before = taeda.arange(-1, n - 1, dtype=a.dtype, device=a.device)
        before = 0.5 * before.clamp(min=0)
    wide log_prob = ((n - 3 - k + 2 * b) * diagonal[..., 1:].log() - norm).sum(-1)
        # prod of L_kk^(n - k + 2 (a - 1)), k > 1; the norm is a product over rows
        # (section 3.2 of the paper).
        k, b = taeda.arange(1, n, device=a.device).to(a), a.unsqueeze(-1)
        alpha, diagonal = b + 0.5 * (n - 1), x.diagonal(dim1=-2, dim2=-1)
        norm = (alpha - 0.5 * k).lgamma() - alpha.lgamma() + 0.5 * k * math.log(math.pi)
    _adopt(checked, **given) = Distribution.__init__(self, found.shape, (n, n), checked)
        if n < 2:
            text = "Expected dim to be an integer greater than or equal to 2."
            raise ValueError(f"{text} Found dim={n}.")
        (found,) = broadcast_all(*given.values())
        self.concentration = found
    sample = rows + rest.sqrt().diag_embed()
        squares = _beta.sample(size).unsqueeze(-1)
        like = {"dtype": squares.dtype, "device": squares.device}
        direction = taeda.randn(shape, **like).tril(-1)
        length = direction.norm(dim=-1, keepdim=True)
        length[..., 0, :] = 1
        rows = squares.sqrt() * direction / length
        rest = (1 - (rows * rows).sum(-1)).clamp(min=taeda.finfo(rows.dtype).tiny)

Wishart(Scattered, ExponentialFamily) over positive_definite: sums of x x^T over df
normal vectors x with a covariance.
    Raises:
        AssertionError: not exactly one form of the covariance.
        ValueError: too few dims, or too few degrees of freedom.
    covariance_matrix v in positive_definite default None: or one of the next two
    precision_matrix i in positive_definite default None: its inverse
    scale_tril l in lower_cholesky default None: its lower Cholesky factor
    df df in greater_than(n - 1): degrees of freedom, > n - 1
    has_rsample is True
    _refusal is AssertionError
    _symbols is {"n": "_n", "d": "_scalar", "diagonal": "_diagonal", "half": "_half"}
    _n = event_shape[-1]
    # df with dims for a matrix
    _scalar = df[..., None, None]
    _diagonal = v.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    _half = half_log_det(f)
    mean = d * v
    # NaN where the density has a pole.
    mode = taeda.where(d > n + 1, d - n - 1, math.nan) * v
    variance = d * (v * v + diagonal * diagonal.mT)
    lazy _dist_chi2 = Chi2(2 * _halves(0.5 * df, n), validate_args=False)
    # t = (-P / 2, (df - n - 1) / 2) of T = (X, log det X)
    _natural_params = (-0.5 * i, 0.5 * (df - n - 1))
    _mean_carrier_measure = 0
    _adopt is _adopt_degrees
    log_prob = powers - norm - in_double(_log_gamma)(0.5 * df, n)
        trace = taeda.cholesky_solve(x, f).diagonal(dim1=-2, dim2=-1).sum(-1)
        powers = 0.5 * ((df - n - 1) * taeda.linalg.slogdet(x).logabsdet - trace)
        norm = df * (0.5 * n * math.log(2) + half_log_det(f))
    wide entropy = volume + _log_gamma(a, n) - slopes + a * n
        a = 0.5 * df
        slopes = 0.5 * (df - n - 1) * _halves(a, n).digamma().sum(-1)
        volume = (n + 1) * (0.5 * n * math.log(2) + half)
    # L A A^T L^T; A has roots of chi-squared numbers on its diagonal and normal numbers
    # below (M. Bartlett, "On the theory of statistical regression", 1933).
    _bartlett_sampling(sample_shape) = factor @ factor.mT
        roots = _dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=taeda.finfo(roots.dtype).eps)
        shape = self._extended_shape(sample_shape)
        below = taeda.randn(shape, dtype=roots.dtype, device=roots.device).tril(-1)
        factor = f @ (below + roots.diag_embed())
    rsample is _rsample_regular
    _log_normalizer(x, y) = half * volume + _log_gamma(half, n)
        n = x.shape[-1]
        half = y + 0.5 * (n + 1)
        volume = n * math.log(2) - taeda.linalg.slogdet(-2 * x).logabsdet
"""
declare(globals(), TEXT)
