"""Kullback-Leibler divergences, by the classes of both distributions.

A divergence is a formula in the language of `_declare.py`, of symbols and members of p,
and of q with `_q` behind their names. Two distributions of one class have a closed
formula each; two of different classes are one rule, the cross entropy less the entropy,
for which the expectations that it names must be known.
"""

from __future__ import annotations

import math
import re
import warnings
from functools import cache
from itertools import product

import taeda
from taeda.nn.functional import softplus

from . import _made as _made
from . import _vectors
from ._declare import KNOWN
from ._formulas import function_of, names_of, wide_function_of
from ._gamma_family import _log_beta as _log_beta
from ._gamma_family import _log_simplex as _log_simplex
from ._wrappers import Independent, TransformedDistribution
from .constraints import is_dependent
from .distribution import ExponentialFamily, tangent
from .utils import _sum_rightmost

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
            text = f"Expected {name} to be a Distribution subclass but got {kind}"
            raise TypeError(text)

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


_FEWER = "KL between Binomials where q.total_count > p.total_count is not implemented"
# Divergences within a class, or of two.
_CLOSED = """
wide Bernoulli = _bernoulli(p, t, p_q, t_q)
wide Bernoulli Poisson = b_q - p * (b_q.log() - t) - softplus(t)
Beta = kl_divergence(_dirichlet, _dirichlet_q)
wide Binomial = _unless(n > n_q, n * _bernoulli(p, t, p_q, t_q))
    if (n < n_q).any():
        raise NotImplementedError(_FEWER)
wide Categorical = _weighted(p, t - t_q, p_q == 0).sum(-1)
wide Cauchy = (((s + s_q) ** 2 + (m - m_q) ** 2) / (4 * s * s_q)).log()
    # F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence
    # between Cauchy distributions", 2019
wide ContinuousBernoulli = _log_normalizer(t_q) - _log_normalizer(t) - (t_q - t) * mean
wide Dirichlet = _log_simplex(a_q) - _log_simplex(a) - ((a_q - a) * logs).sum(-1)
    logs = a.digamma() - a.sum(-1, keepdim=True).digamma()
wide Exponential = _excess(b_q / b)
wide Gamma = a * _excess(ratio) + (a_q.lgamma() - a.lgamma() - (a_q - a) * slope)
    ratio = b_q / b
    slope = a.digamma() + ratio.log()
wide Geometric = _bernoulli(p, t, p_q, t_q) / p
    # 1 / p trials of a Bernoulli distribution on the average
wide Gumbel = offset + rest - ratio.log() + euler_constant * (ratio - 1)
    ratio, offset = s / s_q, (m - m_q) / s_q
    rest = ((1 + ratio).lgamma() - offset).exp() - 1
HalfNormal = kl_divergence(base_dist, base_dist_q)
wide Laplace = _excess(ratio) + offset + ratio * (-offset / ratio).expm1()
    ratio, offset = s / s_q, (m - m_q).abs() / s_q
OneHotCategorical = kl_divergence(_categorical, _categorical_q)
Normal = 0.5 * (_excess((s / s_q) ** 2) + ((m - m_q) / s_q) ** 2)
wide Pareto = _unless(s < s_q, _excess(a_q / a) + a_q * (s / s_q).log())
wide Poisson = b_q - b + taeda.xlogy(b, b / b_q)
wide Uniform = _unless(outside, ((high_q - low_q) / (high - low)).log())
    outside = (low_q > low) | (high_q < high)
"""


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
        text = "the two Independent take different numbers of batch dims"
        raise NotImplementedError(f"kl_divergence: {text}")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the two transforms differ")
    dims = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


# The mean of a function over an interval, from its primitive; that of the logarithm.
_over_width = lambda low, high, from_0: (from_0(high) - from_0(low)) / (high - low)
_log_from_0 = lambda x: taeda.xlogy(x, x.abs()) - x


def _mean_distance(m, s, point):
    z = (m - point) / s
    density = (-0.5 * z * z).exp() * (2 / math.pi) ** 0.5
    return s * (density + z * taeda.erf(z / 2**0.5))


# -E log q(x), by q's parameters and what p expects: of `x`, of its logarithm, of that
# of `y` = 1 - x, and as functions that of e^(t x + c) and that of the distance to m.
_CROSS = """
Beta = _log_beta(a, b) - (a - 1) * log_x - (b - 1) * log_y
ContinuousBernoulli = _log_normalizer(t) - t * x
Exponential = b * x - b.log()
Gamma = a.lgamma() - a * b.log() - (a - 1) * log_x + b * x
Gumbel = s.log() + (x - m) / s + exp(-1 / s, m / s)
Laplace = (2 * s).log() + distance(m) / s
Normal = 0.5 * (spread + (x - m) ** 2) / s**2 + (s * (2 * math.pi) ** 0.5).log()
Pareto = (a + 1) * log_x - a.log() - a * s.log()
Uniform = (high - low).log()
"""
# Those expectations, by p; and the members of p that are one.
_MOMENTS = {"x": "mean", "spread": "variance"}
_EXPECTED = """
log_x Beta = a.digamma() - (a + b).digamma()
log_x Exponential = -b.log() - euler_constant
log_x Gamma = a.digamma() - b.log()
log_x Pareto = s.log() + 1 / a
log_x Uniform = _over_width(low, high, _log_from_0)
log_y Uniform = _over_width(1 - high, 1 - low, _log_from_0)
exp Exponential = lambda t, c: c.exp() / (1 - t / b)
exp Gamma = lambda t, c: c.exp() * (1 - t / b) ** -a
exp Normal = lambda t, c: (t * m + c + 0.5 * (t * s) ** 2).exp()
exp Uniform = lambda t, c: _over_width(low, high, lambda x: (t * x + c).exp() / t)
distance Normal = lambda point: _mean_distance(m, s, point)
"""
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


def _rows(text: str) -> dict:
    """The body of each formula, by the words before it."""
    found = {}
    for row in text.strip().replace("\n    ", "\0").split("\n"):
        first, *lines = row.split("\0")
        names, _, expression = first.partition(" = ")
        found[names] = [*lines, f"return {expression}"]
    return found


def _of_pair(kinds, lines, side: int = 0, make=function_of):
    """A formula as a function of (p, q) of two classes; `side` says whose its names are
    that do not end with `_q`."""
    space, members, expected = KNOWN | globals(), {}, _rows(_EXPECTED)
    for name in names_of(lines):
        own = name.removesuffix("_q")
        whose = side or int(own != name)
        symbol, mean = kinds[whose]._symbols.get(own), f"{name} {kinds[0].__name__}"
        if side and name in _MOMENTS:
            members[name] = f"_p.{_MOMENTS[name]}"
        elif side and mean in expected:
            space[f"_mean_{name}"] = _of_pair(kinds, expected[mean])
            members[name] = f"_mean_{name}(_p, _q)"
        elif symbol or name not in space:
            members[name] = f"{('_p', '_q')[whose]}.{symbol or own}"
    called = f"{kinds[0].__name__} {kinds[1].__name__}.divergence"
    return make(called, ["_p", "_q"], lines, members, space)


def _enter_closed(pair, lines, make) -> None:
    @register_kl(*pair)
    def compiled_first(p, q):
        return register_kl(*pair)(_of_pair(pair, lines, make=make))(p, q)


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


def _enter_cross_entropy(pair, lines) -> None:
    cross = cache(lambda: _of_pair(pair, lines, 1))
    # Whether p has values that q has not depends on the parameters.
    moving = any(is_dependent(kind.support) for kind in pair)

    @register_kl(*pair)
    def divergence(p, q):
        wide = _widened(p), _widened(q)
        found = cross()(*wide) - wide[0].entropy()
        if moving:
            (low, high), (low_q, high_q) = _ends(p), _ends(q)
            for outside in (low < low_q, high > high_q):
                found = found if outside is False else _unless(outside, found)
        return found.to((p.mean + q.mean).dtype)


def _enter_tables() -> None:
    for names, lines in _rows(_CLOSED).items():
        kinds = [KNOWN[name] for name in names.removeprefix("wide ").split()]
        make = wide_function_of if names.startswith("wide ") else function_of
        _enter_closed((kinds[0], kinds[-1]), lines, make)
    cross, expected = _rows(_CROSS), _rows(_EXPECTED).keys()
    means = {each.split()[0] for each in expected}
    for name_q, lines in cross.items():
        wanted = means & {*re.findall(r"\w+", " ".join(lines))}
        for name_p in cross.keys() - {name_q}:
            # Some pairs need what has no closed form.
            if {f"{mean} {name_p}" for mean in wanted} <= expected:
                _enter_cross_entropy((KNOWN[name_p], KNOWN[name_q]), lines)
    for names_p, names_q in _BEYOND.items():
        for pair in product(names_p.split(), names_q.split()):
            register_kl(*[KNOWN[name] for name in pair])(
                lambda p, q: taeda.full_like(p.mean + q.mean, math.inf)
            )


_enter_tables()
