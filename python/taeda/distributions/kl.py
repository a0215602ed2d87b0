"""Kullback-Leibler divergences, by the classes of both distributions.

Two distributions of one class have a closed formula each; two of different classes are
one rule, the cross entropy less the entropy, over tables of expectations.
"""

from __future__ import annotations

import math
import warnings

import taeda
from taeda.distributions._continuous import (
    Cauchy,
    ContinuousBernoulli,
    Exponential,
    Laplace,
    Normal,
    Uniform,
)
from taeda.distributions._declare import in_double
from taeda.distributions._discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from taeda.distributions._gamma_family import Beta, Dirichlet, Gamma
from taeda.distributions._made import Gumbel, HalfNormal, Pareto
from taeda.distributions._vectors import LowRankMultivariateNormal, MultivariateNormal
from taeda.distributions.exp_family import (
    ExponentialFamily,
    inner_product,
    mean_statistics,
)
from taeda.distributions.independent import Independent
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.utils import _sum_rightmost, euler_constant
from taeda.nn.functional import softplus

__all__ = ["kl_divergence", "register_kl"]

# Functions of (p, q) by a pair of classes, and what was found for pairs asked for.
# Both are only written by single operations, which the interpreter's lock makes whole.
_KL_REGISTRY: dict = {}
_KL_MEMOIZE: dict = {}


def register_kl(type_p, type_q):
    """A decorator that enters a function of (p, q) for two classes.

    Raises:
        TypeError: one of them is no class.
    """
    for name, kind in {"type_p": type_p, "type_q": type_q}.items():
        if not isinstance(kind, type):
            raise TypeError(
                f"Expected {name} to be a Distribution subclass but got {kind}"
            )

    def enter(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return enter


def _find(type_p, type_q):
    """The function entered for the nearest base classes, those of p first."""
    steps_p, steps_q = (
        {k: i for i, k in enumerate(t.__mro__)} for t in (type_p, type_q)
    )
    near = {
        (steps_p[p], steps_q[q]): (p, q)
        for p, q in _KL_REGISTRY
        if p in steps_p and q in steps_q
    }
    if not near:
        return None
    by_p, by_q = near[min(near)], near[min(near, key=lambda steps: steps[::-1])]
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p, q):
    """The mean of log p(x) - log q(x) over x from p, of the broadcast batch shape.

    Raises:
        NotImplementedError: for a pair that no formula is known for.

    Example:
        >>> from taeda.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _KL_MEMOIZE:
        _KL_MEMOIZE[kinds] = _find(*kinds)
    function = _KL_MEMOIZE[kinds]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {kinds[0].__name__} and q type "
            f"{kinds[1].__name__}"
        )
    return function(p, q)


# One class -------------------------------------------------------------------


def _formula(kind, *names: str):
    """A decorator: enters a function of these parameters of p, then those of q."""

    def enter(function):
        wide = in_double(function)

        def divergence(p, q):
            return wide(*(getattr(d, name) for d in (p, q) for name in names))

        register_kl(kind, kind)(divergence)
        return function

    return enter


def _excess(ratio):
    """r - 1 - log(r), which is 0 at 1 and positive elsewhere."""
    return ratio - 1 - ratio.log()


def _unless(outside, value):
    """A divergence, infinite where p has values that q has not."""
    return taeda.where(outside, math.inf, value)


@register_kl(Normal, Normal)
def _normal(p, q):
    spread = _excess((p.scale / q.scale) ** 2)
    return 0.5 * (spread + ((p.loc - q.loc) / q.scale) ** 2)


register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal(p.base_dist, q.base_dist))
_formula(Exponential, "rate")(lambda p, q: _excess(q / p))
_formula(Poisson, "rate")(lambda p, q: q - p + taeda.xlogy(p, p / q))
_formula(Uniform, "low", "high")(
    lambda low, high, low_q, high_q: _unless(
        (low_q > low) | (high_q < high), ((high_q - low_q) / (high - low)).log()
    )
)
_formula(Pareto, "scale", "alpha")(
    lambda scale, alpha, scale_q, alpha_q: _unless(
        scale < scale_q, _excess(alpha_q / alpha) + alpha_q * (scale / scale_q).log()
    )
)
# F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence
# between Cauchy distributions", 2019
_formula(Cauchy, "loc", "scale")(
    lambda loc, scale, loc_q, scale_q: (
        ((scale + scale_q) ** 2 + (loc - loc_q) ** 2) / (4 * scale * scale_q)
    ).log()
)


@_formula(Gamma, "concentration", "rate")
def _gamma(a, rate, a_q, rate_q):
    ratio = rate_q / rate
    shapes = a_q.lgamma() - a.lgamma() - (a_q - a) * (a.digamma() + ratio.log())
    return a * _excess(ratio) + shapes


@_formula(Dirichlet, "concentration")
def _dirichlet(a, b):
    def log_beta(c):
        return c.lgamma().sum(-1) - c.sum(-1).lgamma()

    mean_log = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return log_beta(b) - log_beta(a) - ((b - a) * mean_log).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return kl_divergence(p._dirichlet, q._dirichlet)


@_formula(Laplace, "loc", "scale")
def _laplace(loc, scale, loc_q, scale_q):
    ratio, distance = scale / scale_q, (loc - loc_q).abs()
    return _excess(ratio) + (distance + scale * (-distance / scale).expm1()) / scale_q


@_formula(Gumbel, "loc", "scale")
def _gumbel(loc, scale, loc_q, scale_q):
    ratio, offset = scale / scale_q, (loc - loc_q) / scale_q
    rest = ((1 + ratio).lgamma() - offset).exp() - 1
    return offset + rest - ratio.log() + euler_constant * (ratio - 1)


def _weighted(weight, difference, impossible):
    """weight * difference, 0 without weight, infinite if q has no such outcome."""
    return _unless(impossible, difference * weight).where(weight != 0, 0.0)


@_formula(Bernoulli, "probs", "logits")
def _bernoulli(p, t, q, u):
    # -log p = softplus(-t), -log(1 - p) = softplus(t)
    yes = _weighted(p, softplus(-u) - softplus(-t), q == 0)
    return yes + _weighted(1 - p, softplus(u) - softplus(t), q == 1)


@_formula(Geometric, "probs", "logits")
def _geometric(p, t, q, u):
    # 1 / p trials of a Bernoulli distribution on the average
    return _bernoulli(p, t, q, u) / p


@_formula(Binomial, "total_count", "probs", "logits")
def _binomial(n, p, t, n_q, q, u):
    if (n < n_q).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    return _unless(n > n_q, n * _bernoulli(p, t, q, u))


@_formula(Categorical, "probs", "logits")
def _categorical(p, t, q, u):
    return _weighted(p, t - u, q == 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    mean = p.mean * (p.logits - q.logits)
    return mean + q._log_normalizer(q.logits) - p._log_normalizer(p.logits)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _multivariate(p, q):
    """With S S^T the covariance of p, the trace of Q^-1 S S^T is the sum of the
    distances x^T Q^-1 x of the columns of S."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event "
            "shapes cannot be computed"
        )
    columns = p._root().movedim(-1, 0)
    distance = q._distance(columns).sum(0) + q._distance(q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (distance - p.event_shape[0])


# Rules for what is made of others ----------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the normalizer: A(u) - A(t) - <u - t, A'(t)>."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be "
            "computed using Bregman divergences"
        )
    natural, normalizer, slopes = mean_statistics(p)
    other = q._natural_params
    steps = [u - t for u, t in zip(other, natural, strict=True)]
    batch = len(taeda.broadcast_shapes(p.batch_shape, q.batch_shape))
    linear = inner_product(zip(steps, slopes, strict=True), batch)
    return q._log_normalizer(*other) - normalizer - linear


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: the two Independent take different numbers of batch dims"
        )
    each = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(each, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two transforms differ")
    each = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(each, len(p.event_shape) - len(p.base_dist.event_shape))


# Two classes -------------------------------------------------------------------

# The least and the greatest value; a third and fourth entry say what these are beyond
# where they are parameters.
_ENDS = {
    Bernoulli: lambda d: (0.0, 1.0),
    Beta: lambda d: (0.0, 1.0),
    Binomial: lambda d: (0.0, d.total_count, 0.0, math.inf),
    ContinuousBernoulli: lambda d: (0.0, 1.0),
    Exponential: lambda d: (0.0, math.inf),
    Gamma: lambda d: (0.0, math.inf),
    Gumbel: lambda d: (-math.inf, math.inf),
    Laplace: lambda d: (-math.inf, math.inf),
    Normal: lambda d: (-math.inf, math.inf),
    Pareto: lambda d: (d.scale, math.inf, 0.0, math.inf),
    Poisson: lambda d: (0.0, math.inf),
    Uniform: lambda d: (d.low, d.high, -math.inf, math.inf),
}


def _x_log_x(x):
    return taeda.xlogy(x, x.abs()) - x


def _over_width(uniform, primitive):
    """The mean of a function over an interval, from its primitive."""
    low, high = uniform.low, uniform.high
    return (primitive(high) - primitive(low)) / (high - low)


# The means of log x, log(1 - x) and e^(t x).
_MEAN_LOG = {
    Beta: lambda p: (
        p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    ),
    Exponential: lambda p: -p.rate.log() - euler_constant,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _over_width(p, _x_log_x),
}
_MEAN_LOG1M = {Uniform: lambda p: -_over_width(p, lambda x: _x_log_x(1 - x))}
_MEAN_EXP = {
    Exponential: lambda p, t: 1 / (1 - t / p.rate),
    Gamma: lambda p, t: (1 - t / p.rate) ** -p.concentration,
    Normal: lambda p, t: (t * p.loc + 0.5 * (t * p.scale) ** 2).exp(),
    Uniform: lambda p, t: _over_width(p, lambda x: (t * x).exp() / t),
}


def _mean_distance(p, point):
    """The mean of |x - point| of a normal distribution."""
    z = (p.loc - point) / p.scale
    density = (-0.5 * z * z).exp() * (2 / math.pi) ** 0.5
    return p.scale * (density + z * taeda.erf(z / 2**0.5))


def _gumbel_cross(p, q, of):
    tail = of(_MEAN_EXP)(p, -1 / q.scale) * (q.loc / q.scale).exp()
    return q.scale.log() + (p.mean - q.loc) / q.scale + tail


def _beta_cross(p, q, of):
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return log_beta - (a - 1) * of(_MEAN_LOG)(p) - (b - 1) * of(_MEAN_LOG1M)(p)


# -E log q(x); `of` looks an expectation of p up in one of the tables above.
_CROSS = {
    Beta: _beta_cross,
    ContinuousBernoulli: lambda p, q, of: (
        q._log_normalizer(q.logits) - q.logits * p.mean
    ),
    Exponential: lambda p, q, of: q.rate * p.mean - q.rate.log(),
    Gamma: lambda p, q, of: (
        q.concentration.lgamma()
        - q.concentration * q.rate.log()
        - (q.concentration - 1) * of(_MEAN_LOG)(p)
        + q.rate * p.mean
    ),
    Gumbel: _gumbel_cross,
    Laplace: lambda p, q, of: (2 * q.scale).log() + _mean_distance(p, q.loc) / q.scale,
    Normal: lambda p, q, of: (
        0.5 * (p.variance + (p.mean - q.loc) ** 2) / q.scale**2
        + (q.scale * (2 * math.pi) ** 0.5).log()
    ),
    Pareto: lambda p, q, of: (
        (q.alpha + 1) * of(_MEAN_LOG)(p) - q.alpha.log() - q.alpha * q.scale.log()
    ),
    Poisson: lambda p, q, of: q.rate - p.mean * q.rate.log(),
    Uniform: lambda p, q, of: (q.high - q.low).log(),
}


def _widened(distribution):
    """The same distribution in float64: cross entropy and entropy cancel."""
    copy = object.__new__(type(distribution))
    for name, value in vars(distribution).items():
        if isinstance(value, taeda.Tensor) and value.is_floating_point():
            value = value.double()
        elif hasattr(value, "log_prob"):
            value = _widened(value)
        vars(copy)[name] = value
    return copy


def _reaches_beyond(p, q) -> bool:
    """Whether p has values that no parameters of q would allow."""
    (low, high, *_), (low_q, high_q, *rest) = p, q
    below, above = rest or (None, None)
    if isinstance(low, float):
        beyond = low < low_q if isinstance(low_q, float) else low <= below
        if beyond:
            return True
    if isinstance(high, float):
        return high > high_q if isinstance(high_q, float) else high >= above
    return False


def _by_cross_entropy(kind_p, kind_q) -> None:
    def divergence(p, q):
        ends_p, ends_q = _ENDS[kind_p](p), _ENDS[kind_q](q)
        like = p.mean + q.mean
        if _reaches_beyond(ends_p, ends_q):
            return taeda.full_like(like, math.inf)
        wide_p, wide_q = _widened(p), _widened(q)
        found = _CROSS[kind_q](wide_p, wide_q, lambda table: table[kind_p])
        found = found - wide_p.entropy()
        outside = [low < low_q for low, low_q in [(ends_p[0], ends_q[0])]]
        outside += [ends_p[1] > ends_q[1]]
        for each in outside:
            if each is not False:
                found = _unless(each, found)
        return found.to(like.dtype)

    register_kl(kind_p, kind_q)(divergence)


_ON_A_LINE = [Beta, ContinuousBernoulli, Exponential, Gamma, Normal, Pareto, Uniform]
_ROWS = {
    Bernoulli: [Poisson],
    Poisson: [Bernoulli, Binomial],
    Beta: [],
    ContinuousBernoulli: [],
    Exponential: [Gumbel],
    Gamma: [Gumbel],
    Gumbel: [],
    Laplace: [],
    Normal: [Gumbel, Laplace],
    Pareto: [],
    Uniform: [Gumbel],
}
# No formula is known for these.
_LEFT_OUT = [(ContinuousBernoulli, Beta), (ContinuousBernoulli, Gamma)]
for _p, _row in _ROWS.items():
    for _q in _row if _p in (Bernoulli, Poisson) else _row + _ON_A_LINE:
        if _p is not _q and (_p, _q) not in _LEFT_OUT:
            _by_cross_entropy(_p, _q)
