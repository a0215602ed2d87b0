"""Distributions of what transforms make of others' numbers."""

from __future__ import annotations

import math

from taeda.nn.functional import logsigmoid as logsigmoid

from ._continuous import _where as _where
from ._declare import declare
from ._wrappers import TransformedDistribution
from .transforms import *  # noqa: F403
from .utils import broadcast_all

_LOG_2 = math.log(2)
# That of numbers whose squares' mean is e^second, and whose own is e^first.
_variance = lambda first, second: (2 * first).exp() * (second - 2 * first).expm1()
# log E x^n = log(b B(1 + r, b)) of numbers x of Kumaraswamy's law, with r = n / a
_moment = lambda b, r: (1 + r).lgamma() + (b + 1).lgamma() - (1 + r + b).lgamma()


class _Made(TransformedDistribution):
    """Base: `_made` gives the other distribution and the transforms, of the parameters
    and whether they are checked; a parameter that has no source is held as well."""

    has_rsample = True

    def _adopt(self, validate_args, **given) -> None:
        if self._ranks:
            values = broadcast_all(*given.values())
            given = dict(zip(given, values, strict=True))
            vars(self).update(given)
        self.base_dist, self.transforms = self._made(*given.values(), validate_args)
        super()._adopt(validate_args)


TEXT = """
LogNormal(_Made) over positive: numbers whose logarithms are normal.
    loc m in real of base_dist.loc: the mean of the logarithms
    scale s in positive of base_dist.scale: their standard deviation
    mean = (m + s**2 / 2).exp()
    mode = (m - s**2).exp()
    variance = mean**2 * (s**2).expm1()
    entropy = base_dist.entropy() + m
    _made(m, s, check) = Normal(m, s, check), ExpTransform()

LogisticNormal(_Made) over simplex: probabilities of K numbers, made of K - 1 normal
numbers by breaking a stick.
    loc m in real of base_dist.base_dist.loc: the means of the normal numbers
    scale s in positive of base_dist.base_dist.scale: their standard deviations
    _made(m, s, check) = Normal(*vectors, check), StickBreakingTransform()
        vectors = taeda.atleast_1d(*broadcast_all(m, s))

InverseGamma(_Made) over positive: 1 / x of gamma numbers x.
    concentration a in positive of base_dist.concentration: the shape of those
    rate b in positive of base_dist.rate: their rate
    mean = _where(a > 1, b / (a - 1), math.inf)
    mode = b / (a + 1)
    variance = _where(a > 2, (b / (a - 1)) ** 2 / (a - 2), math.inf)
    wide entropy = a + a.lgamma() - (1 + a) * a.digamma() + b.log()
    _made(a, b, check) = Gamma(a, b, check), PowerTransform(-1.0)

_Folded(_Made) over nonnegative: base: |x| of numbers that are symmetric about 0.
    _like is "scale"
    _symbols is {"b": "base_dist"}
    mode = taeda.zeros_like(scale)
    entropy = b.entropy() - _LOG_2
    cdf = 2 * b.cdf(x) - 1
    icdf(prob) = b.icdf((prob + 1) / 2)
    log_prob = _where(x >= 0, b.log_prob(x) + _LOG_2, -math.inf)

HalfNormal(_Folded): the magnitude of normal numbers with the mean 0.
    scale s in positive of base_dist.scale: the standard deviation of those
    mean = (2 / math.pi) ** 0.5 * s
    variance = (1 - 2 / math.pi) * s**2
    _made(s, check) = Normal(0, s, False), AbsTransform()

HalfCauchy(_Folded): the magnitude of Cauchy numbers with the median 0; it has no mean.
    scale s in positive of base_dist.scale: half of their width at half height
    mean = variance = taeda.full_like(s, math.inf)
    _made(s, check) = Cauchy(0, s, False), AbsTransform()

Gumbel(_Made) over real: loc - scale log(-log(u)) of uniform numbers u.
    loc m in real: the mode
    scale s in positive: the width
    mean = m + euler_constant * s
    mode = m
    stddev = math.pi / 6**0.5 * s
    variance = stddev**2
    entropy = s.log() + (1 + euler_constant)
    log_prob = -z - (-z).exp() - s.log()
    cdf = (-(-z).exp()).exp()
    wide icdf = m - s * (-x.log()).log()
    _made(m, s, check) = Uniform(*ends, check), [log, minus, log, moved]
        limits, log = taeda.finfo(m.dtype), ExpTransform().inv
        ends = (taeda.full_like(m, e) for e in (limits.tiny, 1 - limits.eps))
        minus, moved = AffineTransform(0, -taeda.ones_like(s)), AffineTransform(m, -s)

Weibull(_Made) over positive: scale x^(1 / concentration) of exponential numbers x.
    scale s in positive: the width
    concentration k in positive: the inverse of the power
    concentration_reciprocal = 1 / k
    wide mean = s * (1 + 1 / k).lgamma().exp()
    mode = s * (1 - 1 / k) ** (1 / k)
    wide variance = s**2 * _variance((1 + 1 / k).lgamma(), (1 + 2 / k).lgamma())
    entropy = 1 + euler_constant * (1 - 1 / k) + (s / k).log()
    _made(s, k, check) = unit, [PowerTransform(1 / k), AffineTransform(0, s)]
        unit = Exponential(taeda.ones_like(s), check)

Pareto(_Made) over greater_than_eq(s): scale e^x of exponential numbers x of rate alpha.
    alpha a in positive: how fast the tail falls
    scale s in positive: the least value
    # Infinite up to alpha = 1 and 2.
    mean = s / (1 - 1 / a.clamp(min=1))
    mode = s
    variance = _where(a > 2, mean**2 / (a * (a - 2)), math.inf)
    entropy = (s / a).log() + (1 + 1 / a)
    __init__(scale, alpha, validate_args=None) = self._adopt(validate_args, **given)
        given = {"scale": scale, "alpha": alpha}
    _made(s, a, check) = Exponential(a, check), [ExpTransform(), AffineTransform(0, s)]

Kumaraswamy(_Made) over unit_interval: with the distribution function 1 - (1 - x^a)^b.
    concentration1 a in positive: a
    concentration0 b in positive: b
    wide mean = _moment(b, 1 / a).exp()
    wide variance = _variance(_moment(b, 1 / a), _moment(b, 2 / a))
    # None at a pole.
    mode = _where((a >= 1) & (b >= 1), ((a - 1) / (a * b - 1)) ** (1 / a))
    wide entropy = (1 - 1 / b) + (1 - 1 / a) * harmonic - (a * b).log()
        # E log(1 - x^a) = -1 / b, and E log x^a = -H(b) with the harmonic number H
        harmonic = (b + 1).digamma() + euler_constant
    _made(a, b, check) = Uniform(taeda.zeros_like(b), one, check), chain
        one = taeda.ones_like(b)
        flip = AffineTransform(one, -one)
        chain = [PowerTransform(1 / b), flip, PowerTransform(1 / a)]

LogitRelaxedBernoulli(ProbsOrLogits) over real: logits of relaxed Bernoulli numbers.
They are logistic numbers, moved and narrowed (C. Maddison, A. Mnih, Y. Teh, "The
concrete distribution", 2017).
    temperature h: how far from 0 and 1 they are
    probs, logits is odds("the probability of 1")
    rsample = (clamp_probs(uniform_like(shape, t)).logit() + t) / h
    log_prob = h.log() + logsigmoid(z) + logsigmoid(-z)
        z = t - h * x

ExpRelaxedCategorical(OfCategorical) over real_vector: logarithms of relaxed one-hot
vectors.
They are Gumbel numbers, moved and narrowed (C. Maddison, A. Mnih, Y. Teh, "The concrete
distribution", 2017).
    temperature h: how far from the corners they are
    probs, logits is weights("places", "_categorical")
    log_prob = (t - h * x).log_softmax(-1).sum(-1) + norm
        # log of (K - 1)! temperature^(K - 1) and the softmax of t - h x, for K places
        count = t.shape[-1]
        norm = math.lgamma(count) + (count - 1) * h.log()
    rsample = ((t - exponential.log()) / h).log_softmax(-1)
        exponential = -clamp_probs(uniform_like(shape, t)).log()

RelaxedBernoulli(_Made) over unit_interval: numbers near those of a Bernoulli
distribution; differentiable.
    temperature h of base_dist.temperature: how far from 0 and 1 they are
    probs, logits is odds("the probability of 1", source="base_dist")
    _made(h, p, t, check) = LogitRelaxedBernoulli(h, p, t), SigmoidTransform()

RelaxedOneHotCategorical(_Made) over simplex: probabilities near one-hot vectors
(Gumbel-softmax); differentiable.
    temperature h of base_dist.temperature: how far from the corners they are
    probs, logits is weights("places", "base_dist")
    _made(h, p, t, check) = ExpRelaxedCategorical(h, p, t, check), ExpTransform()
"""
declare(globals(), TEXT)
