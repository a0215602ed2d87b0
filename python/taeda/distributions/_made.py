"""Distributions of what transforms make of others' numbers."""

from __future__ import annotations

import math

import taeda
from taeda.nn.functional import logsigmoid

from . import constraints
from . import transforms as to
from ._continuous import Cauchy, Exponential, Normal, Uniform, _where
from ._declare import ProbsOrLogits, formula, odds, parameter, region, weights, wide
from ._discrete import OfCategorical
from ._gamma_family import Gamma
from ._wrappers import TransformedDistribution
from .constraints import positive, real, unit_interval
from .utils import broadcast_all, clamp_probs, euler_constant, uniform_like

_LOG_2 = math.log(2)


class Made(TransformedDistribution):
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


class LogNormal(Made, support=positive):
    """Numbers whose logarithms are normal."""

    loc = parameter("m", real, "the mean of the logarithms", "base_dist")
    scale = parameter("s", positive, "their standard deviation", "base_dist")
    mean = lambda m, s: (m + s**2 / 2).exp()
    mode = lambda m, s: (m - s**2).exp()
    variance = lambda mean, s: mean**2 * (s**2).expm1()
    entropy = lambda m, base_dist: base_dist.entropy() + m
    _made = lambda m, s, check: (Normal(m, s, check), to.ExpTransform())


class LogisticNormal(Made, support=constraints.simplex):
    """Probabilities of K numbers, made of K - 1 normal numbers by breaking a stick."""

    loc = parameter("m", real, "the means of the normal numbers", "base_dist.base_dist")
    scale = parameter("s", positive, "their standard deviations", "base_dist.base_dist")

    def _made(m, s, check):
        vectors = taeda.atleast_1d(*broadcast_all(m, s))
        return Normal(*vectors, check), to.StickBreakingTransform()


class InverseGamma(Made, support=positive):
    """1 / x of gamma numbers x."""

    concentration = parameter("a", positive, "the shape of those", "base_dist")
    rate = parameter("b", positive, "their rate", "base_dist")
    mean = lambda a, b: _where(a > 1, b / (a - 1), math.inf)
    mode = lambda a, b: b / (a + 1)
    variance = lambda a, b: _where(a > 2, (b / (a - 1)) ** 2 / (a - 2), math.inf)
    entropy = wide(lambda a, b: a + a.lgamma() - (1 + a) * a.digamma() + b.log())
    _made = lambda a, b, check: (Gamma(a, b, check), to.PowerTransform(-1.0))


class Folded(Made, support=constraints.nonnegative):
    """Base: |x| of numbers whose distribution is symmetric about 0."""

    _like = "scale"
    _symbols = {"b": "base_dist"}
    mode = formula(lambda scale: taeda.zeros_like(scale))
    entropy = formula(lambda b: b.entropy() - _LOG_2)
    cdf = formula(lambda x, b: 2 * b.cdf(x) - 1)
    icdf = lambda self, prob: self.base_dist.icdf((prob + 1) / 2)
    log_prob = formula(lambda x, b: _where(x >= 0, b.log_prob(x) + _LOG_2, -math.inf))


class HalfNormal(Folded):
    """The magnitude of normal numbers with the mean 0."""

    scale = parameter("s", positive, "the standard deviation of those", "base_dist")
    mean = lambda s: (2 / math.pi) ** 0.5 * s
    variance = lambda s: (1 - 2 / math.pi) * s**2
    _made = lambda s, check: (Normal(0, s, False), to.AbsTransform())


class HalfCauchy(Folded):
    """The magnitude of Cauchy numbers with the median 0; it has no mean."""

    scale = parameter("s", positive, "half of their width at half height", "base_dist")
    mean = variance = lambda s: taeda.full_like(s, math.inf)
    _made = lambda s, check: (Cauchy(0, s, False), to.AbsTransform())


class Gumbel(Made, support=real):
    """loc - scale log(-log(u)) of uniform numbers u."""

    loc = parameter("m", real, "the mode")
    scale = parameter("s", positive, "the width")
    mean = lambda m, s: m + euler_constant * s
    mode = lambda m: m
    stddev = lambda s: math.pi / 6**0.5 * s
    variance = lambda stddev: stddev**2
    entropy = lambda s: s.log() + (1 + euler_constant)
    log_prob = lambda z, s: -z - (-z).exp() - s.log()
    cdf = lambda z: (-(-z).exp()).exp()
    icdf = wide(lambda x, m, s: m - s * (-x.log()).log())

    def _made(m, s, check):
        limits, log = taeda.finfo(m.dtype), to.ExpTransform().inv
        ends = (taeda.full_like(m, e) for e in (limits.tiny, 1 - limits.eps))
        minus = to.AffineTransform(0, -taeda.ones_like(s))
        return Uniform(*ends, check), [log, minus, log, to.AffineTransform(m, -s)]


# That of numbers whose squares' mean is e^second, and whose own is e^first.
_variance = lambda first, second: (2 * first).exp() * (second - 2 * first).expm1()


class Weibull(Made, support=positive):
    """scale x^(1 / concentration) of exponential numbers x."""

    scale = parameter("s", positive, "the width")
    concentration = parameter("k", positive, "the inverse of the power")
    concentration_reciprocal = lambda k: 1 / k
    mean = wide(lambda s, k: s * (1 + 1 / k).lgamma().exp())
    mode = lambda s, k: s * (1 - 1 / k) ** (1 / k)
    variance = wide(
        lambda s, k: s**2 * _variance((1 + 1 / k).lgamma(), (1 + 2 / k).lgamma())
    )
    entropy = lambda s, k: 1 + euler_constant * (1 - 1 / k) + (s / k).log()

    def _made(s, k, check):
        unit = Exponential(taeda.ones_like(s), check)
        return unit, [to.PowerTransform(1 / k), to.AffineTransform(0, s)]


class Pareto(Made):
    """scale e^x of exponential numbers x with the rate alpha."""

    alpha = parameter("a", positive, "how fast the tail falls")
    scale = parameter("s", positive, "the least value")
    support = region(lambda s: constraints.greater_than_eq(s))
    # Infinite up to alpha = 1 and 2.
    mean = lambda s, a: s / (1 - 1 / a.clamp(min=1))
    mode = lambda s: s
    variance = lambda mean, a: _where(a > 2, mean**2 / (a * (a - 2)), math.inf)
    entropy = lambda s, a: (s / a).log() + (1 + 1 / a)

    def __init__(self, scale, alpha, validate_args: bool | None = None) -> None:
        self._adopt(validate_args, scale=scale, alpha=alpha)

    def _made(s, a, check):
        return Exponential(a, check), [to.ExpTransform(), to.AffineTransform(0, s)]


# log E x^n = log(b B(1 + r, b)) of numbers x of Kumaraswamy's law, with r = n / a
_moment = lambda b, r: (1 + r).lgamma() + (b + 1).lgamma() - (1 + r + b).lgamma()


class Kumaraswamy(Made, support=unit_interval):
    """Numbers in [0, 1] with the distribution function 1 - (1 - x^a)^b."""

    concentration1 = parameter("a", positive, "a")
    concentration0 = parameter("b", positive, "b")
    mean = wide(lambda a, b: _moment(b, 1 / a).exp())
    variance = wide(lambda a, b: _variance(_moment(b, 1 / a), _moment(b, 2 / a)))
    # None at a pole.
    mode = lambda a, b: _where((a >= 1) & (b >= 1), ((a - 1) / (a * b - 1)) ** (1 / a))

    @wide
    def entropy(a, b):
        # E log(1 - x^a) = -1 / b, and E log x^a = -H(b) with the harmonic number H
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - (a * b).log()

    def _made(a, b, check):
        one = taeda.ones_like(b)
        flip = to.AffineTransform(one, -one)
        chain = [to.PowerTransform(1 / b), flip, to.PowerTransform(1 / a)]
        return Uniform(taeda.zeros_like(b), one, check), chain


class LogitRelaxedBernoulli(ProbsOrLogits, support=real):
    """Logits of relaxed Bernoulli numbers (C. Maddison, A. Mnih, Y. Teh, "The concrete
    distribution", 2017): logistic numbers, moved and narrowed.
    """

    temperature = parameter("h", None, "how far from 0 and 1 they are")
    probs, logits = odds("the probability of 1")
    rsample = lambda shape, t, h: (clamp_probs(uniform_like(shape, t)).logit() + t) / h

    def log_prob(x, t, h):
        z = t - h * x
        return h.log() + logsigmoid(z) + logsigmoid(-z)


class ExpRelaxedCategorical(OfCategorical, support=constraints.real_vector):
    """Logarithms of relaxed one-hot vectors (C. Maddison, A. Mnih, Y. Teh, "The
    concrete distribution", 2017): Gumbel numbers, moved and narrowed.
    """

    temperature = parameter("h", None, "how far from the corners they are")
    probs, logits = weights("places", "_categorical")

    def log_prob(x, t, h):
        # log of (K - 1)! temperature^(K - 1) and the softmax of t - h x, for K places
        count = t.shape[-1]
        norm = math.lgamma(count) + (count - 1) * h.log()
        return (t - h * x).log_softmax(-1).sum(-1) + norm

    def rsample(shape, t, h):
        exponential = -clamp_probs(uniform_like(shape, t)).log()
        return ((t - exponential.log()) / h).log_softmax(-1)


class RelaxedBernoulli(Made, support=unit_interval):
    """Numbers in (0, 1) near those of a Bernoulli distribution; differentiable."""

    temperature = parameter("h", None, "how far from 0 and 1 they are", "base_dist")
    probs, logits = odds("the probability of 1", source="base_dist")

    def _made(h, p, t, check):
        return LogitRelaxedBernoulli(h, p, t), to.SigmoidTransform()


class RelaxedOneHotCategorical(Made, support=constraints.simplex):
    """Probabilities near one-hot vectors (Gumbel-softmax); differentiable."""

    temperature = parameter("h", None, "how far from the corners they are", "base_dist")
    probs, logits = weights("places", "base_dist")

    def _made(h, p, t, check):
        return ExpRelaxedCategorical(h, p, t, check), to.ExpTransform()
