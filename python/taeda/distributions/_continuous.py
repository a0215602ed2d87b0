"""Continuous distributions of numbers."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import (
    ProbsOrLogits,
    Scalar,
    ScalarFamily,
    dependent_parameters,
    formula,
    parameters,
    region,
    wide,
)
from taeda.distributions.constraints import nonnegative, positive, real, unit_interval
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import (
    _standard_normal,
    broadcast_all,
    clamp_probs,
    uniform_like,
)

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


def _where(condition, value, other: float = math.nan):
    return taeda.where(condition, value, other)


class Normal(ScalarFamily):
    """The normal (Gaussian) distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> taeda.distributions.Normal(0.0, 1.0).log_prob(taeda.tensor(0.0))
        tensor(-0.9189)
    """

    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = real
    mean = mode = formula(lambda m: m)
    stddev = formula(lambda s: s)
    variance = formula(lambda stddev: stddev**2)
    entropy = formula(lambda s: s.log() + (_LOG_ROOT_2PI + 0.5))
    log_prob = formula(
        lambda x, m, s: -0.5 * ((x - m) / s) ** 2 - (s.log() + _LOG_ROOT_2PI)
    )
    cdf = formula(lambda x, m, s: taeda.special.ndtr((x - m) / s))
    icdf = wide(lambda x, m, s: m + s * 2**0.5 * (2 * x - 1).erfinv())
    sample = formula(lambda shape, m, s: taeda.normal(m.expand(shape), s.expand(shape)))
    rsample = formula(
        lambda shape, m, s: m + s * _standard_normal(shape, m.dtype, m.device)
    )
    # Of (x, x^2).
    _natural_params = formula(lambda m, s: (m / s**2, -0.5 / s**2))
    _mean_carrier_measure = 0

    def _log_normalizer(self, t, u):
        return 0.5 * (math.log(math.pi) - (-u).log()) - t * t / (4 * u)


def _laplace_sample(shape, m, s):
    """By the inverse of the distribution function, from numbers in (-1, 1)."""
    limits = taeda.finfo(m.dtype)
    u = m.new_empty(shape).uniform_(limits.eps - 1, 1)
    return m - s * u.sign() * (-u.abs().clamp(min=limits.tiny)).log1p()


class Laplace(Scalar):
    """Exponential numbers to both sides of loc.

    Args:
        loc: the mean.
        scale: the mean distance from it.
    """

    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = real
    mean = mode = formula(lambda m: m)
    variance = formula(lambda s: 2 * s**2)
    stddev = formula(lambda s: 2**0.5 * s)
    entropy = formula(lambda s: (2 * s).log() + 1)
    log_prob = formula(lambda x, m, s: -((x - m) / s).abs() - (2 * s).log())
    cdf = formula(
        lambda x, m, s: 0.5 - 0.5 * (x - m).sign() * (-(x - m).abs() / s).expm1()
    )
    icdf = formula(
        lambda x, m, s: m - s * (x - 0.5).sign() * (-2 * (x - 0.5).abs()).log1p()
    )
    rsample = formula(_laplace_sample)


class Cauchy(Scalar):
    """The ratio of two normal numbers, moved and scaled; it has no mean.

    Args:
        loc: the median.
        scale: half of the width at half height.
    """

    arg_constraints = parameters("m s", loc=real, scale=positive)
    support = real
    mean = formula(lambda m: taeda.full_like(m, math.nan))
    mode = formula(lambda m: m)
    variance = formula(lambda m: taeda.full_like(m, math.inf))
    entropy = formula(lambda s: (s * (4 * math.pi)).log())
    log_prob = formula(
        lambda x, m, s: -(((x - m) / s) ** 2).log1p() - (s * math.pi).log()
    )
    cdf = formula(lambda x, m, s: 0.5 + ((x - m) / s).atan() / math.pi)
    icdf = wide(lambda x, m, s: m + s * (math.pi * (x - 0.5)).tan())
    rsample = formula(lambda shape, m, s: m + s * m.new_empty(shape).cauchy_())


class Uniform(Scalar):
    """Equal density from low (with it) to high (without).

    Args:
        low: the lower bound.
        high: the upper bound, above it.
    """

    arg_constraints = dependent_parameters(
        lambda self: {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        },
        low=0,
        high=0,
    )
    support = region(lambda low, high: constraints.interval(low, high))
    _width = formula(lambda low, high: high - low)
    mean = formula(lambda low, high: (low + high) / 2)
    mode = formula(lambda high: taeda.full_like(high, math.nan))
    stddev = formula(lambda _width: _width / 12**0.5)
    variance = formula(lambda _width: _width**2 / 12)
    entropy = formula(lambda _width: _width.log())
    log_prob = formula(
        lambda x, low, high: _where(
            (low <= x) & (x < high), -(high - low).log(), -math.inf
        )
    )
    cdf = formula(lambda x, low, _width: ((x - low) / _width).clamp(0, 1))
    icdf = formula(lambda x, low, _width: low + _width * x)
    rsample = formula(
        lambda shape, low, _width: low + _width * uniform_like(shape, low)
    )


class Exponential(ScalarFamily):
    """Density rate exp(-rate x) over positive numbers.

    Args:
        rate: the inverse of the mean.
    """

    arg_constraints = parameters("b", rate=positive)
    support = nonnegative
    mean = stddev = formula(lambda b: 1 / b)
    mode = formula(lambda b: taeda.zeros_like(b))
    variance = formula(lambda b: b**-2)
    entropy = formula(lambda b: 1 - b.log())
    log_prob = formula(lambda x, b: b.log() - b * x)
    cdf = formula(lambda x, b: -(-b * x).expm1())
    icdf = formula(lambda x, b: -(-x).log1p() / b)
    rsample = formula(lambda shape, b: b.new_empty(shape).exponential_() / b)
    _natural_params = formula(lambda b: (-b,))
    _mean_carrier_measure = 0

    def _log_normalizer(self, t):
        return -(-t).log()


# B_2k / (2k)! from k = 1 on, of the series below.
_BERNOULLI_NUMBERS = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160),
    *(-691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000),
    43867 / 5109094217170944000,
)


def _near_0(t, near, far):
    """A function of t by its series in t^2 near 0, where the other form cancels."""
    small = t.abs() < 1
    square = _where(small, t, 0.0) ** 2
    series = sum(near(k) * c * square**k for k, c in enumerate(_BERNOULLI_NUMBERS))
    return taeda.where(small, series, far(_where(~small, t, 2.0)))


def _tilted_normalizer(t):
    """log((e^t - 1) / t), the logarithm of the integral of e^(t x) over [0, 1]."""

    def far(t):
        size = t.abs()
        return (0.5 * size + (-(-size).expm1() / size).log()) / (t * t)

    return 0.5 * t + t * t * _near_0(t, lambda k: 1 / (2 * k + 2), far)


def _tilted_mean(t):
    """The normalizer's derivative, 1 / (1 - e^-t) - 1 / t."""
    return 0.5 + t * _near_0(
        t, lambda k: 1, lambda t: (-1 / (-t).expm1() - 1 / t - 0.5) / t
    )


def _tilted_cdf(x, t):
    """(e^(t x) - 1) / (e^t - 1), by exponentials of negative numbers only."""
    x, safe = x.clamp(0, 1), _where(t != 0, t, 1.0)
    size = safe.abs()
    far = (safe.clamp(min=0) * (x - 1)).exp() * (-size * x).expm1() / (-size).expm1()
    # To first order at t = 0, so that t has its gradient there.
    return taeda.where(t != 0, far, x - 0.5 * t * x * (1 - x))


def _tilted_icdf(x, t):
    """Its inverse; a rising density is that of 1 - x turned around."""
    safe = _where(t != 0, t, 1.0)
    size, rising = safe.abs(), safe > 0
    p = taeda.where(rising, 1 - x, x)
    y = -(p * (-size).expm1()).log1p() / size
    far = taeda.where(rising, 1 - y, y)
    return taeda.where(t != 0, far, x + 0.5 * t * x * (1 - x))


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers in [0, 1] with the density proportional to probs^x (1 - probs)^(1 - x).

    That is e^(t x) with t = logits (G. Loaiza-Ganem, J. Cunningham, "The continuous
    Bernoulli: fixing a pervasive error in variational autoencoders", 2019).

    Args:
        probs: in (0, 1); not the mean.
        logits: its logit, in place of it.
        lims: kept for programs that give it; all formulas hold around 1/2 as well.
    """

    arg_constraints = parameters("p t", probs=unit_interval, logits=real)
    support = unit_interval
    _kept = ("_given", "_lims")
    mean = formula(_tilted_mean)
    variance = formula(
        lambda t: _near_0(
            t, lambda k: 2 * k + 1, lambda t: t**-2 - 0.25 / (0.5 * t).sinh() ** 2
        )
    )
    entropy = formula(lambda t: _tilted_normalizer(t) - t * _tilted_mean(t))
    log_prob = formula(lambda x, t: t * x - _tilted_normalizer(t))
    cdf = formula(_tilted_cdf)
    icdf = formula(_tilted_icdf)
    rsample = formula(lambda shape, t: _tilted_icdf(uniform_like(shape, t), t))
    _natural_params = formula(lambda t: (t,))
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(_tilted_normalizer)

    def __init__(
        self,
        probs=None,
        logits=None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args is not None and not unit_interval.check(probs).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(probs)
        self._adopt(validate_args, probs, logits)


def _von_mises_sample(shape, m, k):
    """Rejection from a wrapped Cauchy distribution, in float64.

    D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution",
    Applied Statistics 28, 1979: f = (1 + r z) / (r + z) of z = cos(pi u) is the cosine
    of a proposal, with an r that follows from the concentration k.
    """
    k = k.double()
    root = (1 + 4 * k * k).sqrt()
    rho = 2 * k / (1 + root + (2 * (1 + root)).sqrt())
    r = (1 + rho * rho) / (2 * rho)
    angle = taeda.zeros(shape, dtype=k.dtype, device=k.device)
    waiting = taeda.ones_like(angle, dtype=taeda.bool)
    while waiting.any():
        u, v, w = taeda.rand(3, *shape, dtype=k.dtype, device=k.device)
        z = (math.pi * u).cos()
        f = (1 + r * z) / (r + z)
        c = k * (r - f)
        taken = waiting & ((c * (2 - c) > v) | ((c / v).log() + 1 >= c))
        drawn = (w - 0.5).sign() * f.clamp(-1, 1).acos()
        angle, waiting = taeda.where(taken, drawn, angle), waiting & ~taken
    return (taeda.remainder(angle + m + math.pi, 2 * math.pi) - math.pi).to(m.dtype)


class VonMises(Scalar):
    """Angles with the density proportional to exp(concentration cos(x - loc)).

    `mean` and `variance` are the circular ones.

    Args:
        loc: the mean, in radians; it and values count modulo 2 pi.
        concentration: how narrow it is.
    """

    arg_constraints = parameters("m k", loc=real, concentration=positive)
    support = real
    mean = mode = formula(lambda m: m)
    variance = wide(lambda k: 1 - taeda.special.i1e(k) / taeda.special.i0e(k))
    # k cos d - log(2 pi I0(k)), less k in both terms
    log_prob = wide(
        lambda x, m, k: (
            -2 * k * (0.5 * (x - m)).sin() ** 2
            - (2 * math.pi * taeda.special.i0e(k)).log()
        )
    )
    sample = formula(_von_mises_sample)


def _hazard(z, k):
    """-log of the probability beyond z: log(1 + k z) / k, and z for k = 0."""
    safe = _where(k != 0, k, 1.0)
    # To first order at k = 0, so that k has its gradient there.
    return taeda.where(k != 0, (safe * z).log1p() / safe, z - 0.5 * k * z * z)


def _excess_quantile(h, k):
    """The inverse: (e^(k h) - 1) / k."""
    safe = _where(k != 0, k, 1.0)
    return taeda.where(k != 0, (safe * h).expm1() / safe, h + 0.5 * k * h * h)


def _pareto_quantile(x, m, s, k):
    return m + s * _excess_quantile(-(-x).log1p(), k)


class GeneralizedPareto(Scalar):
    """What exceeds a high threshold: exponential, heavier or lighter tails.

    The probability beyond x is (1 + k z)^(-1 / k) with z = (x - loc) / scale and
    k = concentration (J. Pickands, "Statistical inference using extreme order
    statistics", 1975).

    Args:
        loc: the least value.
        scale: the width.
        concentration: k; 0 is an exponential tail, above 0 a heavy one.
    """

    arg_constraints = parameters("m s k", loc=real, scale=positive, concentration=real)
    support = region(
        lambda loc, scale, concentration: constraints.interval(
            loc, _where(concentration < 0, loc - scale / concentration, math.inf)
        )
    )
    mean = formula(lambda m, s, k: _where(k < 1, m + s / (1 - k)))
    mode = formula(lambda m: m)
    variance = formula(lambda s, k: _where(k < 0.5, (s / (1 - k)) ** 2 / (1 - 2 * k)))
    entropy = formula(lambda s, k: s.log() + k + 1)
    log_prob = formula(lambda x, m, s, k: -(1 + k) * _hazard((x - m) / s, k) - s.log())
    log_survival_function = formula(lambda x, m, s, k: -_hazard((x - m) / s, k))
    log_cdf = formula(
        lambda x, log_survival_function: (-log_survival_function(x).exp()).log1p()
    )
    cdf = formula(lambda x, log_survival_function: -log_survival_function(x).expm1())
    icdf = formula(_pareto_quantile)
    rsample = formula(
        lambda shape, m, s, k: _pareto_quantile(uniform_like(shape, m), m, s, k)
    )
