"""The gamma distribution and its kin: of sums, ratios and shares of gamma numbers."""

from __future__ import annotations

import math

import taeda

from . import constraints
from ._continuous import _where
from ._declare import Expanding, lazy, parameter, wide
from .constraints import nonnegative, positive, real, simplex, unit_interval
from .distribution import Distribution, ExponentialFamily
from .utils import _standard_normal, broadcast_all

# Programs import it from here.
_standard_gamma = lambda concentration: taeda._standard_gamma(concentration)


class Gamma(Expanding, ExponentialFamily, support=nonnegative):
    """Density proportional to x^(concentration - 1) exp(-rate x).

    Samples are those of G. Marsaglia and W. Tsang ("A simple method for generating
    gamma variables", 2000); they are differentiable by both parameters.
    """

    concentration = parameter("a", positive, "the shape, often alpha")
    rate = parameter("b", positive, "the inverse of the scale, often beta")
    _like = "rate"
    mean = lambda a, b: a / b
    mode = lambda a, b: ((a - 1) / b).clamp(min=0)
    variance = lambda a, b: a / b**2
    entropy = wide(lambda a, b: a + a.lgamma() + (1 - a) * a.digamma() - b.log())
    log_prob = wide(lambda x, a, b: (a - 1).xlogy(x) + a.xlogy(b) - a.lgamma() - b * x)
    cdf = lambda x, a, b: taeda.igamma(a, b * x)
    # Of (log x, x).
    _natural_params = lambda a, b: (a - 1, -b)
    _mean_carrier_measure = 0
    _log_normalizer = staticmethod(lambda t, u: (t + 1).lgamma() - (t + 1) * (-u).log())

    def rsample(shape, a, b):
        drawn = _standard_gamma(a.expand(shape)) / b
        # A quotient below the least number would have no logarithm.
        drawn.detach().clamp_(min=taeda.finfo(drawn.dtype).tiny)
        return drawn


class Chi2(Gamma):
    """The sum of squares of df standard normal numbers: Gamma(df / 2, 1 / 2)."""

    df = parameter("n", positive, "degrees of freedom", lambda a: 2 * a)

    def _adopt(self, validate_args, df) -> None:
        super()._adopt(validate_args, concentration=0.5 * df, rate=0.5)


_log_beta = lambda a, b: a.lgamma() + b.lgamma() - (a + b).lgamma()
# log of the integral of prod x^(a - 1) over the simplex
_log_simplex = lambda a: a.lgamma().sum(-1) - a.sum(-1).lgamma()


class Dirichlet(Expanding, ExponentialFamily, support=simplex):
    """Probabilities that sum to 1, with the density proportional to prod x^(a - 1)."""

    _called = "`{}` parameter"
    concentration = parameter("a", constraints.independent(positive, 1), "a")
    _total = lambda a: a.sum(-1, keepdim=True)
    mean = lambda a, _total: a / _total
    variance = lambda mean, _total: mean * (1 - mean) / (_total + 1)
    log_prob = wide(lambda x, a: (a - 1).xlogy(x).sum(-1) - _log_simplex(a))
    rsample = lambda shape, a: taeda._sample_dirichlet(a.expand(shape))
    # Of log x; the measure is 1 / prod x.
    _natural_params = lambda a: (a,)
    _log_normalizer = staticmethod(_log_simplex)

    @wide
    def entropy(a, _total):
        return _log_simplex(a) - ((a - 1) * (a.digamma() - _total.digamma())).sum(-1)

    def mode(a):
        # Concentrations below 1 count as 1; the likeliest corner where all are.
        excess = (a - 1).clamp(min=0)
        corner = taeda.zeros_like(a).scatter(-1, a.argmax(-1, keepdim=True), 1.0)
        inside = excess / excess.sum(-1, keepdim=True)
        return taeda.where((a < 1).all(-1, keepdim=True), corner, inside)


class Beta(Expanding, ExponentialFamily, support=unit_interval):
    """Density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1).

    Its numbers are the first of two that have a Dirichlet distribution.
    """

    _symbols = {"d": "_dirichlet"}
    concentration1 = parameter(
        "a", positive, "often alpha", lambda d: d.concentration[..., 0]
    )
    concentration0 = parameter(
        "b", positive, "often beta", lambda d: d.concentration[..., 1]
    )
    _nested = ("_dirichlet",)
    mean = lambda d: d.mean[..., 0]
    mode = lambda d: d.mode[..., 0]
    variance = lambda d: d.variance[..., 0]
    entropy = lambda d: d.entropy()
    rsample = lambda size, d: d.rsample(size).select(-1, 0)
    # Of (log x, log(1 - x)); the measure is 1 / (x (1 - x)).
    _natural_params = lambda a, b: (a, b)
    _log_normalizer = staticmethod(_log_beta)

    @wide
    def log_prob(x, a, b):
        both = (a - 1).xlogy(x) + taeda.special.xlog1py(b - 1, -x)
        return both - _log_beta(a, b)

    def _adopt(self, validate_args, **given) -> None:
        pair = taeda.stack(broadcast_all(*given.values()), -1)
        self._dirichlet = Dirichlet(pair, validate_args)
        Distribution.__init__(self, pair.shape[:-1], (), validate_args)


# -log of the density of Student's t at the centre
_student_norm = lambda n, s: (
    (0.5 * n).lgamma() - (0.5 * n + 0.5).lgamma() + 0.5 * (math.pi * n).log() + s.log()
)


class StudentT(Expanding, support=real):
    """A normal number over the root of the mean of df squares of others."""

    df = parameter("n", positive, "degrees of freedom")
    loc = parameter("m", real, "the centre", default=0.0)
    scale = parameter("s", positive, "the width", default=1.0)
    _chi2 = lazy(lambda n: Chi2(n, validate_args=False))
    mean = lambda n, m: _where(n > 1, m)
    mode = lambda m: m
    variance = lambda n, s: _where(n > 2, s**2 * n / (n - 2), _where(n > 1, math.inf))

    @wide
    def log_prob(x, n, m, s):
        return -0.5 * (n + 1) * (((x - m) / s) ** 2 / n).log1p() - _student_norm(n, s)

    @wide
    def entropy(n, s):
        slope = (0.5 * n + 0.5).digamma() - (0.5 * n).digamma()
        return _student_norm(n, s) + 0.5 * (n + 1) * slope

    def rsample(shape, size, n, m, s, _chi2):
        normal = _standard_normal(shape, n.dtype, n.device)
        return m + s * normal * (n / _chi2.rsample(size)).sqrt()


class FisherSnedecor(Expanding, support=positive):
    """The ratio of two means of squares of normal numbers."""

    df1 = parameter("a", positive, "degrees of freedom above")
    df2 = parameter("b", positive, "degrees of freedom below")
    _gamma1 = lazy(lambda a: Gamma(0.5 * a, a, validate_args=False))
    _gamma2 = lazy(lambda b: Gamma(0.5 * b, b, validate_args=False))
    mean = lambda b: _where(b > 2, b / (b - 2))
    mode = lambda a, b: _where(a > 2, (a - 2) * b / (a * (b + 2)))
    variance = lambda mean, a, b: (
        2 * mean**2 * _where(b > 4, (1 + (b - 2) / a) / (b - 4))
    )

    @wide
    def log_prob(x, a, b):
        powers = 0.5 * a * (a / b).log() + taeda.xlogy(0.5 * a - 1, x)
        rest = 0.5 * (a + b) * (a / b * x).log1p()
        return powers - rest - _log_beta(0.5 * a, 0.5 * b)

    def rsample(size, _gamma1, _gamma2):
        ratio = _gamma1.rsample(size) / _gamma2.rsample(size)
        return ratio.clamp(min=taeda.finfo(ratio.dtype).tiny)
