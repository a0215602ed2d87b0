"""The gamma distribution and its kin: of sums, ratios and shares of gamma numbers."""

from __future__ import annotations

import math

import taeda

from ._continuous import _where as _where
from ._declare import declare

# Programs import it from here.
_standard_gamma = lambda concentration: taeda._standard_gamma(concentration)
_log_beta = lambda a, b: a.lgamma() + b.lgamma() - (a + b).lgamma()
# log of the integral of prod x^(a - 1) over the simplex
_log_simplex = lambda a: a.lgamma().sum(-1) - a.sum(-1).lgamma()
# -log of the density of Student's t at the centre
_student_norm = lambda n, s: (
    (0.5 * n).lgamma() - (0.5 * n + 0.5).lgamma() + 0.5 * (math.pi * n).log() + s.log()
)

TEXT = """
Gamma(ExponentialFamily) over nonnegative: with the density proportional to
x^(concentration - 1) exp(-rate x).
Samples are those of G. Marsaglia and W. Tsang ("A simple method for generating
gamma variables", 2000); they are differentiable by both parameters.
    concentration a in positive: the shape, often alpha
    rate b in positive: the inverse of the scale, often beta
    _like, _takes_numbers is "rate", True
    mean = a / b
    mode = ((a - 1) / b).clamp(min=0)
    variance = a / b**2
    wide entropy = a + a.lgamma() + (1 - a) * a.digamma() - b.log()
    wide log_prob = (a - 1).xlogy(x) + a.xlogy(b) - a.lgamma() - b * x
    cdf = taeda.igamma(a, b * x)
    # Of (log x, x).
    _natural_params = a - 1, -b
    _mean_carrier_measure = 0
    _log_normalizer(t, u) = (t + 1).lgamma() - (t + 1) * (-u).log()
    rsample = drawn
        drawn = _standard_gamma(a.expand(shape)) / b
        # A quotient below the least number would have no logarithm.
        drawn.detach().clamp_(min=taeda.finfo(drawn.dtype).tiny)

Chi2(Gamma): the sum of squares of df standard normal numbers: Gamma(df / 2, 1 / 2).
    df n in positive of 2 * a: degrees of freedom
    _adopt(validate_args, df) = super(Chi2, self)._adopt(validate_args, **doubled)
        doubled = {"concentration": 0.5 * df, "rate": 0.5}

Dirichlet(ExponentialFamily) over simplex: probabilities that sum to 1, with the density
proportional to prod x^(a - 1).
    _called is "`{}` parameter"
    concentration a in independent(positive, 1): a
    _total = a.sum(-1, keepdim=True)
    mean = a / _total
    variance = mean * (1 - mean) / (_total + 1)
    wide log_prob = (a - 1).xlogy(x).sum(-1) - _log_simplex(a)
    rsample = taeda._sample_dirichlet(a.expand(shape))
    # Of log x; the measure is 1 / prod x.
    _natural_params = a,
    _log_normalizer(t) = _log_simplex(t)
    wide entropy = _log_simplex(a) - ((a - 1) * logs).sum(-1)
        logs = a.digamma() - _total.digamma()
    mode = taeda.where((a < 1).all(-1, keepdim=True), corner, inside)
        # Concentrations below 1 count as 1; the likeliest corner where all are.
        excess = (a - 1).clamp(min=0)
        corner = taeda.zeros_like(a).scatter(-1, a.argmax(-1, keepdim=True), 1.0)
        inside = excess / excess.sum(-1, keepdim=True)

Beta(ExponentialFamily) over unit_interval: with the density proportional to
x^(concentration1 - 1) (1 - x)^(concentration0 - 1).
Its numbers are the first of two that have a Dirichlet distribution.
    _symbols is {"d": "_dirichlet"}
    concentration1 a in positive of d.concentration[..., 0]: often alpha
    concentration0 b in positive of d.concentration[..., 1]: often beta
    _nested is ("_dirichlet",)
    mean = d.mean[..., 0]
    mode = d.mode[..., 0]
    variance = d.variance[..., 0]
    entropy = d.entropy()
    rsample = d.rsample(size).select(-1, 0)
    # Of (log x, log(1 - x)); the measure is 1 / (x (1 - x)).
    _natural_params = a, b
    _log_normalizer(t, u) = _log_beta(t, u)
    wide log_prob = both - _log_beta(a, b)
        both = (a - 1).xlogy(x) + taeda.special.xlog1py(b - 1, -x)
    _adopt(checked, **given) = Distribution.__init__(self, pair.shape[:-1], (), checked)
        pair = taeda.stack(broadcast_all(*given.values()), -1)
        self._dirichlet = Dirichlet(pair, checked)

StudentT over real: A normal number over the root of the mean of df squares of others.
    df n in positive: degrees of freedom
    loc m in real default 0.0: the centre
    scale s in positive default 1.0: the width
    lazy _chi2 = Chi2(n, validate_args=False)
    mean = _where(n > 1, m)
    mode = m
    variance = _where(n > 2, s**2 * n / (n - 2), _where(n > 1, math.inf))
    wide log_prob = -0.5 * (n + 1) * (z**2 / n).log1p() - _student_norm(n, s)
    wide entropy = _student_norm(n, s) + 0.5 * (n + 1) * slope
        slope = (0.5 * n + 0.5).digamma() - (0.5 * n).digamma()
    rsample = m + s * normal * (n / _chi2.rsample(size)).sqrt()
        normal = _standard_normal(shape, n.dtype, n.device)

FisherSnedecor over positive: the ratio of two means of squares of normal numbers.
    df1 a in positive: degrees of freedom above
    df2 b in positive: degrees of freedom below
    lazy _gamma1 = Gamma(0.5 * a, a, validate_args=False)
    lazy _gamma2 = Gamma(0.5 * b, b, validate_args=False)
    mean = _where(b > 2, b / (b - 2))
    mode = _where(a > 2, (a - 2) * b / (a * (b + 2)))
    variance = 2 * mean**2 * _where(b > 4, (1 + (b - 2) / a) / (b - 4))
    wide log_prob = powers - rest - _log_beta(0.5 * a, 0.5 * b)
        powers = 0.5 * a * (a / b).log() + taeda.xlogy(0.5 * a - 1, x)
        rest = 0.5 * (a + b) * (a / b * x).log1p()
    rsample = ratio.clamp(min=taeda.finfo(ratio.dtype).tiny)
        ratio = _gamma1.rsample(size) / _gamma2.rsample(size)
"""
declare(globals(), TEXT)
