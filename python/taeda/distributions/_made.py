"""Distributions of what transforms make of others' numbers."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._continuous import Cauchy, Exponential, Normal, Uniform
from taeda.distributions._declare import (
    OfCategorical,
    ProbsOrLogits,
    formula,
    of,
    parameters,
    region,
    wide,
)
from taeda.distributions._discrete import Categorical
from taeda.distributions._gamma_family import Gamma
from taeda.distributions.constraints import (
    nonnegative,
    positive,
    real,
    real_vector,
    simplex,
    unit_interval,
)
from taeda.distributions.transformed_distribution import TransformedDistribution
from taeda.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from taeda.distributions.utils import (
    broadcast_all,
    clamp_probs,
    euler_constant,
    uniform_like,
)
from taeda.nn.functional import logsigmoid

_LOG_2 = math.log(2)


class Made(TransformedDistribution):
    """Base: `_made` gives the other distribution and the transforms, from whether its
    arguments are checked and the parameters, which it may have as its own."""

    _own = False

    def _adopt(self, validate_args, **given) -> None:
        if self._own:
            values = broadcast_all(*given.values())
            given = dict(zip(given, values, strict=True))
            vars(self).update(given)
        base, chain = self._made(validate_args, *given.values())
        TransformedDistribution.__init__(self, base, chain, validate_args=validate_args)


class LogNormal(Made):
    """Numbers whose logarithms are normal.

    Args:
        loc: the mean of the logarithms.
        scale: their standard deviation.
    """

    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = positive
    has_rsample = True
    loc = of("base_dist", "loc")
    scale = of("base_dist", "scale")
    mean = formula(lambda m, s: (m + s**2 / 2).exp())
    mode = formula(lambda m, s: (m - s**2).exp())
    variance = formula(lambda mean, s: mean**2 * (s**2).expm1())
    entropy = formula(lambda m, base_dist: base_dist.entropy() + m)

    def _made(self, check, m, s):
        return Normal(m, s, check), ExpTransform()


class LogisticNormal(Made):
    """Probabilities of K numbers, made of K - 1 normal numbers by breaking a stick.

    Args:
        loc: the means of the normal numbers.
        scale: their standard deviations.
    """

    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = simplex
    has_rsample = True
    loc = formula(lambda base_dist: base_dist.base_dist.loc)
    scale = formula(lambda base_dist: base_dist.base_dist.scale)

    def _made(self, check, m, s):
        numbers = Normal(m, s, check)
        numbers = numbers if numbers.batch_shape else numbers.expand((1,))
        return numbers, StickBreakingTransform()


class InverseGamma(Made):
    """1 / x of gamma numbers x.

    Args:
        concentration: the shape of those.
        rate: their rate.
    """

    arg_constraints = parameters("a b", concentration=positive, rate=positive)
    support = positive
    has_rsample = True
    concentration = of("base_dist", "concentration")
    rate = of("base_dist", "rate")
    mean = formula(lambda a, b: taeda.where(a > 1, b / (a - 1), math.inf))
    mode = formula(lambda a, b: b / (a + 1))
    variance = formula(
        lambda a, b: taeda.where(a > 2, (b / (a - 1)) ** 2 / (a - 2), math.inf)
    )
    entropy = wide(lambda a, b: a + a.lgamma() - (1 + a) * a.digamma() + b.log())

    def _made(self, check, a, b):
        inverse = Gamma(a, b, check)
        return inverse, PowerTransform(inverse.rate.new_tensor(-1.0))


class Folded(Made):
    """Base: |x| of numbers whose distribution is symmetric about 0."""

    support = nonnegative
    has_rsample = True
    scale = of("base_dist", "scale")
    mode = formula(lambda scale: taeda.zeros_like(scale))
    entropy = formula(lambda base_dist: base_dist.entropy() - _LOG_2)
    cdf = formula(lambda x, base_dist: 2 * base_dist.cdf(x) - 1)
    icdf = formula(lambda x, base_dist: base_dist.icdf((x + 1) / 2))
    _log_density = formula(
        lambda x, base_dist: taeda.where(
            x >= 0, base_dist.log_prob(x) + _LOG_2, -math.inf
        )
    )

    def log_prob(self, value):
        """The logarithm of the density; a plain number is taken as a tensor."""
        return self._log_density(taeda.as_tensor(value).to(self.scale))


class HalfNormal(Folded):
    """The magnitude of normal numbers with the mean 0.

    Args:
        scale: the standard deviation of those.
    """

    arg_constraints = parameters("s", scale=positive)
    mean = formula(lambda s: (2 / math.pi) ** 0.5 * s)
    variance = formula(lambda s: (1 - 2 / math.pi) * s**2)
    _made = staticmethod(lambda check, s: (Normal(0, s, False), AbsTransform()))


class HalfCauchy(Folded):
    """The magnitude of Cauchy numbers with the median 0; it has no mean.

    Args:
        scale: half of the width of those at half height.
    """

    arg_constraints = parameters("s", scale=positive)
    mean = variance = formula(lambda s: taeda.full_like(s, math.inf))
    _made = staticmethod(lambda check, s: (Cauchy(0, s, False), AbsTransform()))


class Gumbel(Made):
    """loc - scale log(-log(u)) of uniform numbers u.

    Args:
        loc: the mode.
        scale: the width.
    """

    _own = True
    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = real
    mean = formula(lambda m, s: m + euler_constant * s)
    mode = formula(lambda m: m)
    stddev = formula(lambda s: math.pi / 6**0.5 * s)
    variance = formula(lambda stddev: stddev**2)
    entropy = formula(lambda s: s.log() + (1 + euler_constant))
    log_prob = formula(lambda x, m, s: (m - x) / s - ((m - x) / s).exp() - s.log())
    cdf = formula(lambda x, m, s: (-((m - x) / s).exp()).exp())
    icdf = wide(lambda x, m, s: m - s * (-x.log()).log())

    def _made(self, check, m, s):
        limits, log = taeda.finfo(m.dtype), ExpTransform().inv
        ends = (taeda.full_like(m, e) for e in (limits.tiny, 1 - limits.eps))
        minus = AffineTransform(0, -taeda.ones_like(s))
        return Uniform(*ends, check), [log, minus, log, AffineTransform(m, -s)]


class Weibull(Made):
    """scale x^(1 / concentration) of exponential numbers x.

    Args:
        scale: the width.
        concentration: the inverse of the power.
    """

    _own = True
    arg_constraints = parameters("s k", scale=positive, concentration=positive)
    support = positive
    concentration_reciprocal = formula(lambda k: 1 / k)
    mean = wide(lambda s, k: s * (1 + 1 / k).lgamma().exp())
    mode = formula(lambda s, k: s * (1 - 1 / k) ** (1 / k))
    # Gamma(1 + 2 / k) over the square of Gamma(1 + 1 / k), less 1
    variance = wide(
        lambda s, k: (
            (s * (1 + 1 / k).lgamma().exp()) ** 2
            * ((1 + 2 / k).lgamma() - 2 * (1 + 1 / k).lgamma()).expm1()
        )
    )
    entropy = formula(lambda s, k: 1 + euler_constant * (1 - 1 / k) + (s / k).log())

    def _made(self, check, s, k):
        unit = Exponential(taeda.ones_like(s), check)
        return unit, [PowerTransform(1 / k), AffineTransform(0, s)]


class Pareto(Made):
    """scale e^x of exponential numbers x with the rate alpha.

    Args:
        scale: the least value.
        alpha: how fast the tail falls.
    """

    _own = True
    arg_constraints = parameters("a s", alpha=positive, scale=positive)
    support = region(lambda scale: constraints.greater_than_eq(scale))
    # Infinite up to alpha = 1 and 2.
    mean = formula(lambda s, a: s / (1 - 1 / a.clamp(min=1)))
    mode = formula(lambda s: s)
    variance = formula(
        lambda mean, a: taeda.where(a > 2, mean**2 / (a * (a - 2)), math.inf)
    )
    entropy = formula(lambda s, a: (s / a).log() + (1 + 1 / a))

    def __init__(self, scale, alpha, validate_args: bool | None = None) -> None:
        self._adopt(validate_args, scale=scale, alpha=alpha)

    def _made(self, check, s, a):
        return Exponential(a, check), [ExpTransform(), AffineTransform(0, s)]


def _kumaraswamy_log_moment(a, b, n: int):
    """log E x^n = log(b B(1 + n / a, b))."""
    return (1 + n / a).lgamma() + (b + 1).lgamma() - (1 + n / a + b).lgamma()


def _kumaraswamy_variance(a, b):
    first, second = (_kumaraswamy_log_moment(a, b, n) for n in (1, 2))
    return (2 * first).exp() * (second - 2 * first).expm1()


class Kumaraswamy(Made):
    """Numbers in [0, 1] with the distribution function 1 - (1 - x^a)^b.

    Args:
        concentration1: a.
        concentration0: b.
    """

    _own = True
    arg_constraints = parameters(
        "a b", concentration1=positive, concentration0=positive
    )
    support = unit_interval
    has_rsample = True
    mean = wide(lambda a, b: _kumaraswamy_log_moment(a, b, 1).exp())
    # None at a pole.
    mode = formula(
        lambda a, b: taeda.where(
            (a >= 1) & (b >= 1), ((a - 1) / (a * b - 1)) ** (1 / a), math.nan
        )
    )
    variance = wide(_kumaraswamy_variance)
    # E log(1 - x^a) = -1 / b, and E log x^a = -H(b) with the harmonic number H
    entropy = wide(
        lambda a, b: (
            (1 - 1 / b)
            + (1 - 1 / a) * ((b + 1).digamma() + euler_constant)
            - (a * b).log()
        )
    )

    def _made(self, check, a, b):
        one = taeda.ones_like(b)
        chain = [
            PowerTransform(1 / b),
            AffineTransform(one, -one),
            PowerTransform(1 / a),
        ]
        return Uniform(taeda.zeros_like(b), one, check), chain


def _logistic_density(x, t, temperature):
    z = t - temperature * x
    return temperature.log() + logsigmoid(z) + logsigmoid(-z)


class LogitRelaxedBernoulli(ProbsOrLogits):
    """Logits of relaxed Bernoulli numbers (C. Maddison, A. Mnih, Y. Teh, "The concrete
    distribution", 2017): logistic numbers, moved and narrowed.

    Args:
        temperature: how far from 0 and 1 they are.
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    arg_constraints = parameters("p t", probs=unit_interval, logits=real)
    support = real
    _kept = ("_given", "temperature")
    log_prob = formula(_logistic_density)
    rsample = formula(
        lambda shape, t, temperature: (
            (clamp_probs(uniform_like(shape, t)).logit() + t) / temperature
        )
    )

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._adopt(validate_args, probs, logits)


class ExpRelaxedCategorical(OfCategorical):
    """Logarithms of relaxed one-hot vectors (C. Maddison, A. Mnih, Y. Teh, "The
    concrete distribution", 2017): Gumbel numbers, moved and narrowed.

    Args:
        temperature: how far from the corners they are.
        probs: weights of the places along the last dim.
        logits: logarithms of weights, in place of them.
    """

    arg_constraints = parameters("p t", probs=simplex, logits=real_vector)
    support = real_vector
    _kept = ("temperature",)
    # The last event dim holds K numbers: log of (K - 1)! temperature^(K - 1) ...
    log_prob = formula(
        lambda x, t, temperature: (
            (t - temperature * x).log_softmax(-1).sum(-1)
            + (t.shape[-1] - 1) * temperature.log()
            + math.lgamma(t.shape[-1])
        )
    )
    rsample = formula(
        lambda shape, t, temperature: (
            (t - (-clamp_probs(uniform_like(shape, t)).log()).log()) / temperature
        ).log_softmax(-1)
    )

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._adopt_categorical(Categorical(probs, logits), validate_args)


class Relaxed(Made):
    """Base of what is near a discrete distribution, and differentiable."""

    has_rsample = True
    temperature = of("base_dist", "temperature")
    logits = of("base_dist", "logits")
    probs = of("base_dist", "probs")

    def __init__(
        self, temperature, probs=None, logits=None, validate_args: bool | None = None
    ) -> None:
        self._adopt(validate_args, temperature=temperature, probs=probs, logits=logits)


class RelaxedBernoulli(Relaxed):
    """Numbers in (0, 1) near those of a Bernoulli distribution; differentiable.

    Args:
        temperature: how far from 0 and 1 they are.
        probs: the probability of 1.
        logits: its logit, in place of it.
    """

    __init__ = Relaxed.__init__
    arg_constraints = parameters("p t", probs=unit_interval, logits=real)
    support = unit_interval

    def _made(self, check, *given):
        return LogitRelaxedBernoulli(*given), SigmoidTransform()


class RelaxedOneHotCategorical(Relaxed):
    """Probabilities near one-hot vectors (Gumbel-softmax); differentiable.

    Args:
        temperature: how far from the corners they are.
        probs: weights of the places along the last dim.
        logits: logarithms of weights, in place of them.
    """

    __init__ = Relaxed.__init__
    arg_constraints = parameters("p t", probs=simplex, logits=real_vector)
    support = simplex

    def _made(self, check, *given):
        return ExpRelaxedCategorical(*given, check), ExpTransform()
