"""Kullback-Leibler divergences, by the classes of both distributions."""

from __future__ import annotations

import math
import warnings
from functools import total_ordering

import taeda
from taeda import inf
from taeda.distributions.bernoulli import Bernoulli
from taeda.distributions.beta import Beta
from taeda.distributions.binomial import Binomial
from taeda.distributions.categorical import Categorical
from taeda.distributions.cauchy import Cauchy
from taeda.distributions.dirichlet import Dirichlet
from taeda.distributions.exponential import Exponential
from taeda.distributions.gamma import Gamma
from taeda.distributions.geometric import Geometric
from taeda.distributions.gumbel import Gumbel
from taeda.distributions.half_normal import HalfNormal
from taeda.distributions.independent import Independent
from taeda.distributions.laplace import Laplace
from taeda.distributions.log_normal import LogNormal
from taeda.distributions.multivariate_normal import (
    MultivariateNormal,
    _batch_mahalanobis,
)
from taeda.distributions.normal import Normal
from taeda.distributions.one_hot_categorical import OneHotCategorical
from taeda.distributions.poisson import Poisson
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.uniform import Uniform
from taeda.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict = {}
_KL_MEMOIZE: dict = {}


def register_kl(type_p, type_q):
    """A decorator that enters a function of (p, q) for two classes.

    Raises:
        TypeError: one of them is no class.
    """
    for kind, name in ((type_p, "type_p"), (type_q, "type_q")):
        if not isinstance(kind, type):
            raise TypeError(
                f"Expected {name} to be a Distribution subclass but got {kind}"
            )

    def enter(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return enter


@total_ordering
class _Match:
    """Orders classes by how near they are to the one asked for."""

    def __init__(self, *kinds) -> None:
        self.types = kinds

    def __eq__(self, other) -> bool:
        return self.types == other.types

    def __le__(self, other) -> bool:
        for x, y in zip(self.types, other.types, strict=True):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _found(type_p, type_q):
    matches = [
        pair
        for pair in _KL_REGISTRY
        if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
    ]
    if not matches:
        return NotImplemented
    left = min(_Match(*pair) for pair in matches).types
    right = min(_Match(*reversed(pair)) for pair in matches).types
    function = _KL_REGISTRY[left]
    if function is not _KL_REGISTRY[right[1], right[0]]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[0].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return function


def kl_divergence(p, q):
    """The mean of log p(x) - log q(x) over x from p.

    Raises:
        NotImplementedError: for a pair that no formula is known for.

    Example:
        >>> from taeda.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _found(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q "
            f"type {q.__class__.__name__}"
        )
    return function(p, q)


def _infinite(like):
    return taeda.full_like(like, inf)


@register_kl(Normal, Normal)
def _normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    offset = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + offset - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = taeda.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes[q.probs == 0] = inf
    yes[p.probs == 0] = 0
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    no[q.probs == 1] = inf
    no[p.probs == 1] = 0
    return yes + no


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    found = p.total_count * (
        p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    )
    more = p.total_count > q.total_count
    found[more] = inf
    return found


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    above = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return above - (4 * p.scale * q.scale).log()


@register_kl(Beta, Beta)
def _beta(p, q):
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * taeda.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * taeda.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * taeda.digamma(sum_p)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    t1 = total.lgamma() - b.sum(-1).lgamma()
    t2 = (a.lgamma() - b.lgamma()).sum(-1)
    t3 = (a - b) * (a.digamma() - total.digamma().unsqueeze(-1))
    return t1 - t2 + t3.sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = taeda.lgamma(q.concentration) - taeda.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * taeda.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - taeda.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio = p.scale / q.scale
    offset = (p.loc - q.loc) / q.scale
    tail = taeda.exp((1 + ratio).lgamma() - offset)
    return offset - ratio.log() + euler_constant * (ratio - 1) + tail - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio = p.scale / q.scale
    offset = (p.loc - q.loc).abs()
    t2 = offset / q.scale
    return -ratio.log() + t2 + ratio * taeda.exp(-offset / p.scale) - 1


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    found[(q.low > p.low) | (q.high < p.high)] = inf
    return found


@register_kl(Uniform, Normal)
def _uniform_normal(p, q):
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    spread = width.pow(2) / 12
    offset = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return t1 + 0.5 * (spread + offset) / q.scale.pow(2)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event "
            "shapes cannot be computed"
        )
    fp, fq = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    half = q._half_log_det() - p._half_log_det()
    batch = taeda.broadcast_shapes(fq.shape[:-2], fp.shape[:-2])
    n = p.event_shape[0]
    turned = taeda.linalg.solve_triangular(
        fq.expand(batch + (n, n)), fp.expand(batch + (n, n)), upper=False
    )
    trace = turned.pow(2).sum((-2, -1))
    distance = _batch_mahalanobis(fq, q.loc - p.loc)
    return half + 0.5 * (trace + distance - n)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(found, p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    found = kl_divergence(p.base_dist, q.base_dist)
    return _sum_rightmost(found, len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(LogNormal, LogNormal)
def _log_normal(p, q):
    return _normal_normal(p.base_dist, q.base_dist)


def _never(*pairs) -> None:
    """Pairs where p has values that q has not."""
    for type_p, type_q, name in pairs:
        register_kl(type_p, type_q)(
            lambda p, q, name=name: _infinite(getattr(p, name) + getattr(q, _one(q)))
        )


def _one(distribution) -> str:
    return distribution._names[0] if hasattr(distribution, "_names") else "mean"


_never(
    (Normal, Beta, "loc"),
    (Normal, Exponential, "loc"),
    (Normal, Gamma, "loc"),
    (Normal, Uniform, "loc"),
    (Laplace, Beta, "loc"),
    (Laplace, Exponential, "loc"),
    (Laplace, Gamma, "loc"),
    (Laplace, Uniform, "loc"),
    (Exponential, Beta, "rate"),
    (Exponential, Uniform, "rate"),
    (Gamma, Beta, "concentration"),
    (Gamma, Uniform, "concentration"),
    (Poisson, Bernoulli, "rate"),
)
