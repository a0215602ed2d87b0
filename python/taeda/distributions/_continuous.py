"""Continuous distributions of numbers."""

from __future__ import annotations

import math

import taeda

from . import constraints
from ._declare import Expanding, ProbsOrLogits, argument, odds, parameter, region, wide
from .constraints import nonnegative, positive, real, unit_interval
from .distribution import ExponentialFamily
from .utils import _standard_normal, broadcast_all, clamp_probs, uniform_like

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_where = lambda condition, value, other=math.nan: taeda.where(condition, value, other)


class Normal(Expanding, ExponentialFamily, support=real):
    """The normal (Gaussian) distribution.

    Example:
        >>> taeda.distributions.Normal(0.0, 1.0).log_prob(taeda.tensor(0.0))
        tensor(-0.9189)
    """

    loc = parameter("m", real, "the mean")
    scale = parameter("s", positive, "the standard deviation")
    mean = mode = lambda m: m
    stddev = lambda s: s
    variance = lambda stddev: stddev**2
    entropy = lambda s: s.log() + (_LOG_ROOT_2PI + 0.5)
    log_prob = lambda z, s: -0.5 * z**2 - (s.log() + _LOG_ROOT_2PI)
    cdf = lambda z: taeda.special.ndtr(z)
    icdf = wide(lambda x, m, s: m + s * 2**0.5 * (2 * x - 1).erfinv())
    sample = lambda shape, m, s: taeda.normal(m.expand(shape), s.expand(shape))
    rsample = lambda shape, m, s: m + s * _standard_normal(shape, m.dtype, m.device)
    # Of (x, x^2).
    _natural_params = lambda m, s: (m / s**2, -0.5 / s**2)
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(
        lambda t, u: 0.5 * (math.log(math.pi) - (-u).log()) - t * t / (4 * u)
    )


class Laplace(Expanding, support=real):
    """Exponential numbers to both sides of loc."""

    loc = parameter("m", real, "the mean")
    scale = parameter("s", positive, "the mean distance from it")
    mean = mode = lambda m: m
    variance = lambda s: 2 * s**2
    stddev = lambda s: 2**0.5 * s
    entropy = lambda s: (2 * s).log() + 1
    log_prob = lambda z, s: -z.abs() - (2 * s).log()
    cdf = lambda z: 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()
    icdf = lambda x, m, s: m - s * (x - 0.5).sign() * (-2 * (x - 0.5).abs()).log1p()

    def rsample(shape, m, s):
        # By the inverse of the distribution function, from numbers in (-1, 1).
        limits = taeda.finfo(m.dtype)
        u = m.new_empty(shape).uniform_(limits.eps - 1, 1)
        return m - s * u.sign() * (-u.abs().clamp(min=limits.tiny)).log1p()


class Cauchy(Expanding, support=real):
    """The ratio of two normal numbers, moved and scaled; it has no mean."""

    loc = parameter("m", real, "the median")
    scale = parameter("s", positive, "half of the width at half height")
    mean = lambda m: taeda.full_like(m, math.nan)
    mode = lambda m: m
    variance = lambda m: taeda.full_like(m, math.inf)
    entropy = lambda s: (s * (4 * math.pi)).log()
    log_prob = lambda z, s: -(z**2).log1p() - (s * math.pi).log()
    cdf = lambda z: 0.5 + z.atan() / math.pi
    icdf = wide(lambda x, m, s: m + s * (math.pi * (x - 0.5)).tan())
    rsample = lambda shape, m, s: m + s * m.new_empty(shape).cauchy_()


class Uniform(Expanding):
    """Equal density from low (with it) to high (without)."""

    low = parameter("a", lambda b: constraints.less_than(b), "the lower bound")
    high = parameter("b", lambda a: constraints.greater_than(a), "one above low")
    support = region(lambda a, b: constraints.interval(a, b))
    _width = lambda a, b: b - a
    mean = lambda a, b: (a + b) / 2
    mode = lambda b: taeda.full_like(b, math.nan)
    stddev = lambda _width: _width / 12**0.5
    variance = lambda _width: _width**2 / 12
    entropy = lambda _width: _width.log()
    log_prob = lambda x, a, b: _where((a <= x) & (x < b), -(b - a).log(), -math.inf)
    cdf = lambda x, a, _width: ((x - a) / _width).clamp(0, 1)
    icdf = lambda x, a, _width: a + _width * x
    rsample = lambda shape, a, icdf: icdf(uniform_like(shape, a))


class Exponential(Expanding, ExponentialFamily, support=nonnegative):
    """Density rate exp(-rate x) over positive numbers."""

    rate = parameter("b", positive, "the inverse of the mean")
    mean = stddev = lambda b: 1 / b
    mode = lambda b: taeda.zeros_like(b)
    variance = lambda b: b**-2
    entropy = lambda b: 1 - b.log()
    log_prob = lambda x, b: b.log() - b * x
    cdf = lambda x, b: -(-b * x).expm1()
    icdf = lambda x, b: -(-x).log1p() / b
    rsample = lambda shape, b: b.new_empty(shape).exponential_() / b
    _natural_params = lambda b: (-b,)
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(lambda t: -(-t).log())


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

    over = lambda size: 0.5 * size + (-(-size).expm1() / size).log()
    far = lambda t: over(t.abs()) / (t * t)
    return 0.5 * t + t * t * _near_0(t, lambda k: 1 / (2 * k + 2), far)


def _log1p_over(z, k):
    """log(1 + k z) / k, to first order at k = 0, so that k has its gradient there."""
    safe = _where(k != 0, k, 1.0)
    return taeda.where(k != 0, (safe * z).log1p() / safe, z - 0.5 * k * z * z)


def _expm1_over(h, k):
    """The inverse, (e^(k h) - 1) / k."""
    safe = _where(k != 0, k, 1.0)
    return taeda.where(k != 0, (safe * h).expm1() / safe, h + 0.5 * k * h * h)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily, support=unit_interval):
    """Numbers in [0, 1] with the density proportional to probs^x (1 - probs)^(1 - x).

    That is e^(t x) with t = logits (G. Loaiza-Ganem, J. Cunningham, "The continuous
    Bernoulli: fixing a pervasive error in variational autoencoders", 2019).
    """

    probs, logits = odds("in (0, 1); not the mean")
    lims = argument("unused: formulas hold near 1/2", default=(0.499, 0.501))
    _lims = lambda lims: lims
    entropy = lambda t, mean: _tilted_normalizer(t) - t * mean
    log_prob = lambda x, t: t * x - _tilted_normalizer(t)
    rsample = lambda shape, t, icdf: icdf(uniform_like(shape, t))
    _natural_params = lambda t: (t,)
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(_tilted_normalizer)

    def mean(t):
        # 1 / (1 - e^-t) - 1 / t, the normalizer's derivative
        far = lambda t: (-1 / (-t).expm1() - 1 / t - 0.5) / t
        return 0.5 + t * _near_0(t, lambda k: 1, far)

    def variance(t):
        far = lambda t: t**-2 - 0.25 / (0.5 * t).sinh() ** 2
        return _near_0(t, lambda k: 2 * k + 1, far)

    def cdf(x, t):
        # (e^(t x) - 1) / (e^t - 1), by exponentials that do not overflow
        x, fall = x.clamp(0, 1), taeda.where(t > 1, -t, t)
        rise = 0.5 * (t - fall)
        return (rise * (x - 1)).exp() * _expm1_over(x, fall) / _expm1_over(1, fall)

    def icdf(x, t):
        # A steeply rising density is that of 1 - x turned around.
        rising = t > 1
        fall, p = taeda.where(rising, -t, t), taeda.where(rising, 1 - x, x)
        y = _log1p_over(p * _expm1_over(1, fall), fall)
        return taeda.where(rising, 1 - y, y)

    def _adopt(self, validate_args, probs, logits) -> None:
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args is not None and not unit_interval.check(probs).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(probs)
        super()._adopt(validate_args, probs, logits)


class VonMises(Expanding, support=real):
    """Angles with the density proportional to exp(concentration cos(x - loc)).

    `mean` and `variance` are the circular ones. Samples are those of D. J. Best and
    N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
    Statistics 28, 1979.
    """

    loc = parameter("m", real, "the mean, in radians; it and values count modulo 2 pi")
    concentration = parameter("k", positive, "how narrow it is")
    mean = mode = lambda m: m
    variance = wide(lambda k: 1 - taeda.special.i1e(k) / taeda.special.i0e(k))

    @wide
    def log_prob(x, m, k):
        # k cos d - log(2 pi I0(k)), less k in both terms
        nearness = -2 * k * (0.5 * (x - m)).sin() ** 2
        return nearness - (2 * math.pi * taeda.special.i0e(k)).log()

    def sample(shape, m, k):
        # Rejection from a wrapped Cauchy distribution, in float64: the cosine of a
        # proposal is f = (1 + r z) / (r + z) of z = cos(pi u); r follows from k.
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


class GeneralizedPareto(Expanding):
    """What exceeds a high threshold: exponential, heavier or lighter tails.

    The probability beyond x is (1 + k z)^(-1 / k) with z = (x - loc) / scale and
    k = concentration (J. Pickands, "Statistical inference using extreme order
    statistics", 1975).
    """

    loc = parameter("m", real, "the least value")
    scale = parameter("s", positive, "the width")
    concentration = parameter("k", real, "0 is an exponential tail, more a heavy one")
    _end = lambda m, s, k: _where(k < 0, m - s / k, math.inf)
    support = region(lambda m, _end: constraints.interval(m, _end))
    mean = lambda m, s, k: _where(k < 1, m + s / (1 - k))
    mode = lambda m: m
    variance = lambda s, k: _where(k < 0.5, (s / (1 - k)) ** 2 / (1 - 2 * k))
    entropy = lambda s, k: s.log() + k + 1
    log_prob = lambda z, s, k: -(1 + k) * _log1p_over(z, k) - s.log()
    log_survival_function = lambda z, k: -_log1p_over(z, k)
    log_cdf = lambda z, k: (-(-_log1p_over(z, k)).exp()).log1p()
    cdf = lambda z, k: -(-_log1p_over(z, k)).expm1()
    icdf = lambda x, m, s, k: m + s * _expm1_over(-(-x).log1p(), k)
    rsample = lambda shape, m, icdf: icdf(uniform_like(shape, m))
