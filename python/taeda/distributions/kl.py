"""Kullback-Leibler divergences, by the classes of both distributions.

A divergence is a formula in the language of `_declare.py`: its arguments are symbols
and members of p, those of q with `_q` behind their names. Two distributions of one
class have a closed formula each; two of different classes are one rule, the cross
entropy less the entropy, for which the expectations that it names must be known.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from itertools import product
from operator import attrgetter

import taeda
from taeda.nn.functional import softplus

from . import _continuous, _discrete, _gamma_family, _made, _vectors
from ._formulas import in_double
from ._gamma_family import _log_beta
from ._wrappers import Independent, TransformedDistribution
from .constraints import is_dependent
from .distribution import ExponentialFamily, tangent
from .utils import _sum_rightmost, euler_constant

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
    bases_p, bases_q = type_p.__mro__, type_q.__mro__
    by_p = [pair for pair in product(bases_p, bases_q) if pair in _KL_REGISTRY]
    by_q = [(p, q) for q, p in product(bases_q, bases_p) if (p, q) in _KL_REGISTRY]
    if not by_p:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type "
            f"{type_q.__name__}"
        )
    if _KL_REGISTRY[by_p[0]] is not _KL_REGISTRY[by_q[0]]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({by_p[0][0].__name__}, {by_q[0][1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p[0]]


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
    return _KL_MEMOIZE[kinds](p, q)


# One class -------------------------------------------------------------------


# r - 1 - log(r), which is 0 at 1 and positive elsewhere
_excess = lambda ratio: ratio - 1 - ratio.log()
# A divergence, infinite where p has values that q has not.
_unless = lambda outside, value: taeda.where(outside, math.inf, value)


def _weighted(weight, difference, impossible):
    """weight * difference, 0 without weight, infinite if q has no such outcome."""
    return _unless(impossible, difference * weight).where(weight != 0, 0.0)


def _bernoulli(p, t, p_q, t_q):
    # -log p = softplus(-t), -log(1 - p) = softplus(t)
    yes = _weighted(p, softplus(-t_q) - softplus(-t), p_q == 0)
    return yes + _weighted(1 - p, softplus(t_q) - softplus(t), p_q == 1)


def _binomial(n, p, t, n_q, p_q, t_q):
    if (n < n_q).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    return _unless(n > n_q, n * _bernoulli(p, t, p_q, t_q))


def _gamma(a, b, a_q, b_q):
    ratio = b_q / b
    shapes = a_q.lgamma() - a.lgamma() - (a_q - a) * (a.digamma() + ratio.log())
    return a * _excess(ratio) + shapes


def _gumbel(ratio, offset):
    rest = ((1 + ratio).lgamma() - offset).exp() - 1
    return offset + rest - ratio.log() + euler_constant * (ratio - 1)


def _laplace(ratio, offset):
    return _excess(ratio) + offset + ratio * (-offset / ratio).expm1()


# By the name of a class, or of two; or the attribute of both whose divergence it is.
_CLOSED = {
    "Bernoulli": _bernoulli,
    "Beta": "_dirichlet",
    "Bernoulli Poisson": lambda p, t, b_q: b_q - p * (b_q.log() - t) - softplus(t),
    "Binomial": _binomial,
    "Categorical": lambda p, t, p_q, t_q: _weighted(p, t - t_q, p_q == 0).sum(-1),
    # F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence
    # between Cauchy distributions", 2019
    "Cauchy": lambda m, s, m_q, s_q: (
        ((s + s_q) ** 2 + (m - m_q) ** 2) / (4 * s * s_q)
    ).log(),
    "ContinuousBernoulli": lambda t, mean, _log_normalizer, t_q: (
        _log_normalizer(t_q) - _log_normalizer(t) - (t_q - t) * mean
    ),
    "Dirichlet": lambda a, _log_normalizer, a_q: (
        (_log_normalizer(a_q) - _log_normalizer(a))
        - ((a_q - a) * (a.digamma() - a.sum(-1, keepdim=True).digamma())).sum(-1)
    ),
    "Exponential": lambda b, b_q: _excess(b_q / b),
    "Gamma": _gamma,
    # 1 / p trials of a Bernoulli distribution on the average
    "Geometric": lambda p, t, p_q, t_q: _bernoulli(p, t, p_q, t_q) / p,
    "Gumbel": lambda m, s, m_q, s_q: _gumbel(s / s_q, (m - m_q) / s_q),
    "HalfNormal": "base_dist",
    "Laplace": lambda m, s, m_q, s_q: _laplace(s / s_q, (m - m_q).abs() / s_q),
    "OneHotCategorical": "_categorical",
    "Pareto": lambda s, a, s_q, a_q: _unless(
        s < s_q, _excess(a_q / a) + a_q * (s / s_q).log()
    ),
    "Poisson": lambda b, b_q: b_q - b + taeda.xlogy(b, b / b_q),
    "Uniform": lambda low, high, low_q, high_q: _unless(
        (low_q > low) | (high_q < high), ((high_q - low_q) / (high - low)).log()
    ),
}


@register_kl(_continuous.Normal, _continuous.Normal)
def _normal(p, q):
    spread = _excess((p.scale / q.scale) ** 2)
    return 0.5 * (spread + ((p.loc - q.loc) / q.scale) ** 2)


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


_NORMAL_VECTORS = _vectors.MultivariateNormal, _vectors.LowRankMultivariateNormal
for _pair in product(_NORMAL_VECTORS, repeat=2):
    register_kl(*_pair)(_multivariate)


# Rules for what is made of others ----------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the normalizer: A(u) - A(t) - <u - t, A'(t)>."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be "
            "computed using Bregman divergences"
        )
    natural = q._natural_params
    return q._log_normalizer(*natural) - tangent(p, natural)


@register_kl(Independent, Independent)
def _independent(p, q):
    dims = p.reinterpreted_batch_ndims
    if dims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: the two Independent take different numbers of batch dims"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two transforms differ")
    dims = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


# Two classes -------------------------------------------------------------------

# -E log q(x), by q's parameters and what p expects: of `x`, of its logarithm, of that
# of `y` = 1 - x, and as functions that of e^(t x + c) and that of the distance to m.
_CROSS = {
    "Beta": lambda a, b, log_x, log_y: (
        _log_beta(a, b) - (a - 1) * log_x - (b - 1) * log_y
    ),
    "ContinuousBernoulli": lambda t, _log_normalizer, x: _log_normalizer(t) - t * x,
    "Exponential": lambda b, x: b * x - b.log(),
    "Gamma": lambda a, b, x, log_x: a.lgamma() - a * b.log() - (a - 1) * log_x + b * x,
    "Gumbel": lambda m, s, x, exp: s.log() + (x - m) / s + exp(-1 / s, m / s),
    "Laplace": lambda m, s, distance: (2 * s).log() + distance(m) / s,
    "Normal": lambda m, s, x, variance: (
        0.5 * (variance + (x - m) ** 2) / s**2 + (s * (2 * math.pi) ** 0.5).log()
    ),
    "Pareto": lambda s, a, log_x: (a + 1) * log_x - a.log() - a * s.log(),
    "Uniform": lambda low, high: (high - low).log(),
}


# The mean of a function over an interval, from its primitive; that of the logarithm.
_over_width = lambda low, high, from_0: (from_0(high) - from_0(low)) / (high - low)
_log_from_0 = lambda x: taeda.xlogy(x, x.abs()) - x


def _mean_distance(m, s, point):
    z = (m - point) / s
    density = (-0.5 * z * z).exp() * (2 / math.pi) ** 0.5
    return s * (density + z * taeda.erf(z / 2**0.5))


# Those expectations, by p; and the members of p that are one.
_MOMENTS = {"x": "mean", "variance": "variance"}
_EXPECTED = {
    "log_x": {
        "Beta": lambda a, b: a.digamma() - (a + b).digamma(),
        "Exponential": lambda b: -b.log() - euler_constant,
        "Gamma": lambda a, b: a.digamma() - b.log(),
        "Pareto": lambda s, a: s.log() + 1 / a,
        "Uniform": lambda low, high: _over_width(low, high, _log_from_0),
    },
    "log_y": {"Uniform": lambda a, b: _over_width(1 - b, 1 - a, _log_from_0)},
    "exp": {
        "Exponential": lambda b: lambda t, c: c.exp() / (1 - t / b),
        "Gamma": lambda a, b: lambda t, c: c.exp() * (1 - t / b) ** -a,
        "Normal": lambda m, s: lambda t, c: (t * m + c + 0.5 * (t * s) ** 2).exp(),
        "Uniform": lambda low, high: (
            lambda t, c: _over_width(low, high, lambda x: (t * x + c).exp() / t)
        ),
    },
    "distance": {"Normal": lambda m, s: lambda point: _mean_distance(m, s, point)},
}
# Where p has values that no q of these has.
_BEYOND = {
    "Poisson": "Bernoulli Binomial",
    "Gumbel Laplace Normal": (
        "Beta ContinuousBernoulli Exponential Gamma Pareto Uniform"
    ),
    "Exponential Gamma": "Beta ContinuousBernoulli Pareto Uniform",
    "Pareto": "Beta ContinuousBernoulli Uniform",
    "Beta ContinuousBernoulli": "Pareto",
}


def _arguments(function) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount]


def _of_pair(formula, kinds, side: int = 0, wrap=lambda function: function):
    """A formula as a function of (p, q) of two classes; `side` says whose its names are
    that do not end with `_q`.

    Raises:
        KeyError: it needs an expectation that is not known for p.
    """

    def source(name: str):
        if side and name in _MOMENTS:
            return 0, attrgetter(_MOMENTS[name])
        if side and name in _EXPECTED:
            return 0, _of_pair(_EXPECTED[name][kinds[0].__name__], kinds)
        whose, name = side or name.endswith("_q"), name.removesuffix("_q")
        return whose, attrgetter(kinds[whose]._symbols.get(name, name))

    sources, evaluate = [source(n) for n in _arguments(formula)], wrap(formula)
    return lambda *pair: evaluate(*[read(pair[whose]) for whose, read in sources])


def _of_part(name: str):
    part = attrgetter(name)
    return lambda p, q: kl_divergence(part(p), part(q))


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


def _ends(distribution):
    """The least and the greatest value."""
    region = distribution.support
    least = getattr(region, "lower_bound", -math.inf)
    return least, getattr(region, "upper_bound", math.inf)


def _enter_cross_entropy(pair, cross) -> None:
    cross = _of_pair(cross, pair, 1)
    # Whether p has values that q has not depends on the parameters.
    moving = any(is_dependent(kind.support) for kind in pair)

    @register_kl(*pair)
    def divergence(p, q):
        wide = _widened(p), _widened(q)
        found = cross(*wide) - wide[0].entropy()
        if moving:
            (low, high), (low_q, high_q) = _ends(p), _ends(q)
            for outside in (low < low_q, high > high_q):
                found = found if outside is False else _unless(outside, found)
        return found.to((p.mean + q.mean).dtype)


def _enter_tables() -> None:
    known = vars(_continuous) | vars(_discrete) | vars(_gamma_family) | vars(_made)
    for names, formula in _CLOSED.items():
        kinds = [known[name] for name in names.split()]
        pair = kinds[0], kinds[-1]
        named = isinstance(formula, str)
        found = _of_part(formula) if named else _of_pair(formula, pair, wrap=in_double)
        register_kl(*pair)(found)
    for name_p, name_q in product(_CROSS, repeat=2):
        pair = known[name_p], known[name_q]
        # Some pairs need what has no closed form.
        with suppress(KeyError):
            if name_p != name_q:
                _enter_cross_entropy(pair, _CROSS[name_q])
    for names_p, names_q in _BEYOND.items():
        for pair in product(names_p.split(), names_q.split()):
            register_kl(*[known[name] for name in pair])(
                lambda p, q: taeda.full_like(p.mean + q.mean, math.inf)
            )


_enter_tables()
