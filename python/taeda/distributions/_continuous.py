"""Continuous distributions of numbers."""

from __future__ import annotations

import math

import taeda

from ._declare import declare
from .constraints import unit_interval
from .utils import broadcast_all, clamp_probs

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_where = lambda condition, value, other=math.nan: taeda.where(condition, value, other)
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


def _tilted_rest(t):
    """log((e^t - 1) / t) - max(t, 0), which stays small where t is large."""
    near = lambda k: 1 / (2 * k + 2)
    falling = taeda.where(t > 0, -t, t)
    size = _where(t.abs() < 1, 1.0, t.abs())
    far = (-(-size).expm1() / size).log()
    square = _where(t.abs() < 1, t, 0.0) ** 2
    close = 0.5 * falling + square * _near_0(t, near, taeda.zeros_like)
    return taeda.where(t.abs() < 1, close, far)


def _tilted_normalizer(t):
    """log((e^t - 1) / t), the logarithm of the integral of e^(t x) over [0, 1]."""
    return _where(t > 0, t, 0.0) + _tilted_rest(t)


def _log1p_over(z, k):
    """log(1 + k z) / k, to first order at k = 0, so that k has its gradient there."""
    safe = _where(k != 0, k, 1.0)
    return taeda.where(k != 0, (safe * z).log1p() / safe, z - 0.5 * k * z * z)


def _expm1_over(h, k):
    """The inverse, (e^(k h) - 1) / k."""
    safe = _where(k != 0, k, 1.0)
    return taeda.where(k != 0, (safe * h).expm1() / safe, h + 0.5 * k * h * h)


def _inside(checked: bool | None, probs):
    """Probabilities of a continuous Bernoulli distribution, off 0 and 1."""
    if probs is None:
        return None
    (probs,) = broadcast_all(probs)
    if checked is not None and not unit_interval.check(probs).all():
        raise ValueError("The parameter probs has invalid values")
    return clamp_probs(probs)


def _best_fisher(shape, m, k):
    """Angles by rejection from a wrapped Cauchy distribution."""
    # The cosine of a proposal is f = (1 + r z) / (r + z) of z = cos(pi u).
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
    return taeda.remainder(angle + m + math.pi, 2 * math.pi) - math.pi


TEXT = """
Normal(ExponentialFamily) over real: the normal (Gaussian) distribution.
    Example:
        >>> taeda.distributions.Normal(0.0, 1.0).log_prob(taeda.tensor(0.0))
        tensor(-0.9189)
    loc m in real: the mean
    scale s in positive: the standard deviation
    mean = mode = m
    stddev = s
    variance = stddev**2
    entropy = s.log() + (_LOG_ROOT_2PI + 0.5)
    log_prob = -0.5 * z**2 - (s.log() + _LOG_ROOT_2PI)
    cdf = taeda.special.ndtr(z)
    wide icdf = m + s * 2**0.5 * (2 * x - 1).erfinv()
    sample = taeda.normal(m.expand(shape), s.expand(shape))
    rsample = m + s * _standard_normal(shape, m.dtype, m.device)
    # Of (x, x^2).
    _natural_params = m / s**2, -0.5 / s**2
    _mean_carrier_measure = 0
    _log_normalizer(t, u) = 0.5 * (math.log(math.pi) - (-u).log()) - t * t / (4 * u)

Laplace over real: exponential numbers to both sides of loc.
    loc m in real: the mean
    scale s in positive: the mean distance from it
    mean = mode = m
    variance = 2 * s**2
    stddev = 2**0.5 * s
    entropy = (2 * s).log() + 1
    log_prob = -z.abs() - (2 * s).log()
    cdf = 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()
    icdf = m - s * (x - 0.5).sign() * (-2 * (x - 0.5).abs()).log1p()
    rsample = m - s * u.sign() * (-u.abs().clamp(min=limits.tiny)).log1p()
        # By the inverse of the distribution function, from numbers in (-1, 1).
        limits = taeda.finfo(m.dtype)
        u = m.new_empty(shape).uniform_(limits.eps - 1, 1)

Cauchy over real: the ratio of two normal numbers, moved and scaled; it has no mean.
    loc m in real: the median
    scale s in positive: half of the width at half height
    mean = taeda.full_like(m, math.nan)
    mode = m
    variance = taeda.full_like(m, math.inf)
    entropy = (s * (4 * math.pi)).log()
    log_prob = -(z**2).log1p() - (s * math.pi).log()
    cdf = 0.5 + z.atan() / math.pi
    wide icdf = m + s * (math.pi * (x - 0.5)).tan()
    rsample = m + s * m.new_empty(shape).cauchy_()

Uniform over interval(a, b): equal density from low (with it) to high (without).
    low a in less_than(b): the lower bound
    high b in greater_than(a): one above low
    _width = b - a
    mean = (a + b) / 2
    mode = taeda.full_like(b, math.nan)
    stddev = _width / 12**0.5
    variance = _width**2 / 12
    entropy = _width.log()
    log_prob = _where((a <= x) & (x < b), -(b - a).log(), -math.inf)
    cdf = ((x - a) / _width).clamp(0, 1)
    icdf = a + _width * x
    rsample = icdf(uniform_like(shape, a))

Exponential(ExponentialFamily) over nonnegative: of the density rate exp(-rate x).
    rate b in positive: the inverse of the mean
    mean = stddev = 1 / b
    mode = taeda.zeros_like(b)
    variance = b**-2
    entropy = 1 - b.log()
    log_prob = b.log() - b * x
    cdf = -(-b * x).expm1()
    icdf = -(-x).log1p() / b
    rsample = b.new_empty(shape).exponential_() / b
    _natural_params = -b,
    _mean_carrier_measure = 0
    _log_normalizer(t) = -(-t).log()

ContinuousBernoulli(ProbsOrLogits, ExponentialFamily) over unit_interval: with the
density proportional to probs^x (1 - probs)^(1 - x).
That is e^(t x) with t = logits (G. Loaiza-Ganem, J. Cunningham, "The continuous
Bernoulli: fixing a pervasive error in variational autoencoders", 2019).
    probs, logits is odds("in (0, 1); not the mean")
    lims lims default (0.499, 0.501): unused, formulas hold near 1/2
    _lims = lims
    entropy = _tilted_normalizer(t) - t * mean
    log_prob = t * (x - (t > 0).to(x.dtype)) - _tilted_rest(t)
    rsample = icdf(uniform_like(shape, t))
    _natural_params = t,
    _mean_carrier_measure = 0
    _log_normalizer(t) = _tilted_normalizer(t)
    mean = 0.5 + t * _near_0(t, lambda k: 1, far)
        # 1 / (1 - e^-t) - 1 / t, the normalizer's derivative
        far = lambda t: (-1 / (-t).expm1() - 1 / t - 0.5) / t
    variance = _near_0(t, lambda k: 2 * k + 1, far)
        far = lambda t: t**-2 - 0.25 / (0.5 * t).sinh() ** 2
    cdf = (rise * (u - 1)).exp() * _expm1_over(u, fall) / _expm1_over(1, fall)
        # (e^(t u) - 1) / (e^t - 1), by exponentials that do not overflow
        u, fall = x.clamp(0, 1), taeda.where(t > 1, -t, t)
        rise = 0.5 * (t - fall)
    icdf = taeda.where(rising, 1 - y, y)
        # A steeply rising density is that of 1 - x turned around.
        rising = t > 1
        fall, p = taeda.where(rising, -t, t), taeda.where(rising, 1 - x, x)
        y = _log1p_over(p * _expm1_over(1, fall), fall)
    _adopt(checked, probs, logits) = ProbsOrLogits._adopt(self, checked, inside, logits)
        inside = _inside(checked, probs)

VonMises over real: angles x, of a density proportional to
exp(concentration cos(x - loc)).
`mean` and `variance` are the circular ones. Samples are those of D. J. Best and
N. I. Fisher, "Efficient simulation of the von Mises distribution", Applied
Statistics 28, 1979.
    loc m in real: the mean, in radians; it and values count modulo 2 pi
    concentration k in positive: how narrow it is
    mean = mode = m
    wide variance = 1 - taeda.special.i1e(k) / taeda.special.i0e(k)
    wide log_prob = nearness - (2 * math.pi * taeda.special.i0e(k)).log()
        # k cos d - log(2 pi I0(k)), less k in both terms
        nearness = -2 * k * (0.5 * (x - m)).sin() ** 2
    sample = _best_fisher(shape, m, k.double()).to(m.dtype)

GeneralizedPareto over interval(m, _end): what exceeds a high threshold.
The probability beyond x is (1 + k z)^(-1 / k) with z = (x - loc) / scale and
k = concentration (J. Pickands, "Statistical inference using extreme order
statistics", 1975).
    loc m in real: the least value
    scale s in positive: the width
    concentration k in real: 0 is an exponential tail, more a heavy one
    _end = _where(k < 0, m - s / k, math.inf)
    mean = _where(k < 1, m + s / (1 - k))
    mode = m
    variance = _where(k < 0.5, (s / (1 - k)) ** 2 / (1 - 2 * k))
    entropy = s.log() + k + 1
    log_prob = -(1 + k) * _log1p_over(z, k) - s.log()
    log_survival_function = -_log1p_over(z, k)
    log_cdf = (-(-_log1p_over(z, k)).exp()).log1p()
    cdf = -(-_log1p_over(z, k)).expm1()
    icdf = m + s * _expm1_over(-(-x).log1p(), k)
    rsample = icdf(uniform_like(shape, m))
"""
declare(globals(), TEXT)
