"""Textbook densities in mpmath, and what integrals over them give, to 20 digits.

`LINE` has, by the name of a distribution of numbers: parameters (a batch of cases, all
exact in float32), the logarithm of the density, its support, values to try.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import mpmath as mp

mp.mp.dps = 30
INF = mp.inf
# Norms are asked for at each point of an integral.
loggamma, beta, besseli, log = (
    functools.lru_cache(maxsize=4096)(f)
    for f in (mp.loggamma, mp.beta, mp.besseli, mp.log)
)


@dataclass
class Case:
    """One distribution with a batch of parameters."""

    parameters: dict
    log_density: object
    ends: object = field(default=lambda **p: (-INF, INF))
    values: tuple = (-1.5, 0.25, 2.0)
    discrete: bool = False

    @property
    def count(self) -> int:
        """How many parameter sets there are."""
        return len(next(iter(self.parameters.values())))

    def law(self, i: int) -> Law:
        """That with the i-th parameters."""
        return Law(self, {name: mp.mpf(v[i]) for name, v in self.parameters.items()})


@dataclass
class Law:
    """A distribution with exact parameters."""

    case: Case
    p: dict

    @functools.cached_property
    def ends(self) -> tuple:
        """The least and greatest value."""
        low, high = self.case.ends(**self.p)
        return mp.mpf(low), mp.mpf(high)

    def log(self, x):
        """The logarithm of the density; -inf outside."""
        low, high = self.ends
        return self.case.log_density(x, **self.p) if low <= x <= high else -INF

    def mean_of(self, f, low=None, high=None, kink=0):
        """The mean of f(x) over x between two values, by quadrature or summation."""
        start, end = self.ends
        low, high = (start if low is None else low), (end if high is None else high)
        if self.case.discrete:
            # Beyond 300 each probability here is below 1e-30.
            stop = int(min(high, 300))
            return mp.fsum(self._term(f, mp.mpf(k)) for k in range(int(low), stop + 1))
        if high <= low:
            return mp.mpf(0)
        # A density may have a kink at its centre.
        breaks = {kink, self.p.get("loc", 0), *(-2, 0, 0.5, 1, 2, 30)}
        inner = sorted(v for v in breaks if low < v < high)
        return mp.quad(lambda x: self._term(f, x), [low, *inner, high])

    def _term(self, f, x):
        power = self.log(x)
        return mp.exp(power) * f(x) if -150 < power < INF else mp.mpf(0)

    def cdf(self, x):
        """The probability of values up to x."""
        low, high = self.ends
        if not low < x < high:
            return mp.mpf(0 if x <= low else 1)
        return self.mean_of(lambda y: 1, high=x)

    @functools.cached_property
    def mean(self):
        """By integration."""
        return self.mean_of(lambda x: x)

    @functools.cached_property
    def variance(self):
        """By integration."""
        return self.mean_of(lambda x: (x - self.mean) ** 2)

    @functools.cached_property
    def entropy(self):
        """By integration."""
        return -self.mean_of(self.log)

    def divergence(self, other: Law):
        """KL(self, other) by integration; infinite where other has less support."""
        (low, high), (low_q, high_q) = self.ends, other.ends
        if low < low_q or high > high_q:
            return INF
        kink = other.p.get("loc", 0)
        return self.mean_of(lambda x: self.log(x) - other.log(x), kink=kink)


def _gamma(x, concentration, rate):
    a, b = concentration, rate
    return a * mp.log(b) - loggamma(a) + _xlog(a - 1, x) - b * x


def _xlog(a, x):
    return mp.mpf(0) if a == 0 else a * mp.log(x)


def _beta(x, concentration1, concentration0):
    a, b = concentration1, concentration0
    return _xlog(a - 1, x) + _xlog(b - 1, 1 - x) - log(beta(a, b))


def _student(x, df, loc, scale):
    z = (x - loc) / scale
    norm = log(beta(mp.mpf(1) / 2, df / 2)) + mp.log(df) / 2 + mp.log(scale)
    return -(df + 1) / 2 * mp.log1p(z * z / df) - norm


def _f(x, df1, df2):
    a, b = df1 / 2, df2 / 2
    share = df1 * x / (df1 * x + df2)
    return _beta(share, a, b) + mp.log(df1 * df2) - 2 * mp.log(df1 * x + df2)


def _normal(x, loc, scale):
    return -(((x - loc) / scale) ** 2) / 2 - mp.log(scale * mp.sqrt(2 * mp.pi))


def _gumbel(x, loc, scale):
    z = (x - loc) / scale
    # e^-z would have millions of digits before its point.
    return -INF if z < -50 else -z - mp.exp(-z) - mp.log(scale)


def _weibull(x, scale, concentration):
    k, z = concentration, x / scale
    return mp.log(k / scale) + _xlog(k - 1, z) - z**k


def _kumaraswamy(x, concentration1, concentration0):
    a, b = concentration1, concentration0
    return mp.log(a * b) + _xlog(a - 1, x) + _xlog(b - 1, 1 - x**a)


def _excess(x, loc, scale, concentration):
    k, z = concentration, (x - loc) / scale
    if k == 0:
        return -z - mp.log(scale)
    return -(1 + 1 / k) * mp.log1p(k * z) - mp.log(scale)


def _excess_ends(loc, scale, concentration):
    return loc, loc - scale / concentration if concentration < 0 else INF


def _continuous_bernoulli(x, probs):
    t = mp.log(probs / (1 - probs))
    norm = mp.mpf(0) if t == 0 else mp.log(mp.expm1(t) / t)
    return t * x - norm


def _bernoulli(x, probs):
    p = probs if x == 1 else 1 - probs
    return mp.log(p) if p else -INF


def _binomial(x, total_count, probs):
    n, p = total_count, probs
    return mp.log(mp.binomial(n, x)) + x * mp.log(p) + (n - x) * mp.log1p(-p)


def _negative_binomial(x, total_count, probs):
    n, p = total_count, probs
    orders = mp.loggamma(x + n) - loggamma(n) - mp.loggamma(x + 1)
    return orders + n * mp.log1p(-p) + x * mp.log(p)


def _relaxed(x, temperature, probs):
    # The density of a logistic number's sigmoid (Maddison et al., 2017, appendix B).
    t, odds = temperature, probs / (1 - probs)
    tail = odds * x**-t + (1 - x) ** -t
    return mp.log(t * odds) - (t + 1) * (mp.log(x) + mp.log1p(-x)) - 2 * mp.log(tail)


POSITIVE = {"ends": lambda **p: (0, INF), "values": (0.125, 1.0, 3.5)}
UNIT = {"ends": lambda **p: (0, 1), "values": (0.0625, 0.5, 0.875)}
COUNT = {"ends": lambda **p: (0, INF), "values": (0.0, 1.0, 7.0), "discrete": True}
LOC_SCALE = {"loc": [0.0, 1.5], "scale": [1.0, 0.75]}
LINE = {
    "Normal": Case(LOC_SCALE, _normal),
    "Laplace": Case(
        LOC_SCALE, lambda x, loc, scale: -abs(x - loc) / scale - mp.log(2 * scale)
    ),
    "Cauchy": Case(
        LOC_SCALE,
        lambda x, loc, scale: (
            -mp.log1p(((x - loc) / scale) ** 2) - mp.log(mp.pi * scale)
        ),
    ),
    "Gumbel": Case(LOC_SCALE, _gumbel),
    "StudentT": Case({"df": [5.0, 40.0], **LOC_SCALE}, _student),
    "VonMises": Case(
        {"loc": [0.0, 1.5, 0.5], "concentration": [1.0, 0.0625, 90.0]},
        lambda x, loc, concentration: (
            concentration * mp.cos(x - loc)
            - mp.log(2 * mp.pi * besseli(0, concentration))
        ),
        lambda **p: (-mp.pi, mp.pi),
    ),
    "Uniform": Case(
        {"low": [0.0, -2.0, 0.5], "high": [1.0, 3.0, 0.875]},
        lambda x, low, high: -mp.log(high - low),
        lambda low, high: (low, high),
        (0.5, 0.625, 0.75),
    ),
    "Exponential": Case(
        {"rate": [1.0, 0.375]}, lambda x, rate: mp.log(rate) - rate * x, **POSITIVE
    ),
    "Gamma": Case(
        {"concentration": [0.5, 3.0, 40.0], "rate": [2.0, 0.75, 8.0]},
        _gamma,
        **POSITIVE,
    ),
    "Chi2": Case(
        {"df": [1.0, 7.0]}, lambda x, df: _gamma(x, df / 2, mp.mpf(1) / 2), **POSITIVE
    ),
    "InverseGamma": Case(
        {"concentration": [3.5, 6.0], "rate": [2.0, 0.75]},
        lambda x, concentration, rate: (
            _gamma(1 / x, concentration, rate) - 2 * mp.log(x)
        ),
        **POSITIVE,
    ),
    "FisherSnedecor": Case({"df1": [3.0, 10.0], "df2": [6.0, 30.0]}, _f, **POSITIVE),
    "HalfNormal": Case(
        {"scale": [1.0, 2.5]},
        lambda x, scale: _normal(x, 0, scale) + mp.log(2),
        **POSITIVE,
    ),
    "HalfCauchy": Case(
        {"scale": [1.0, 2.5]},
        lambda x, scale: mp.log(2 / (mp.pi * scale * (1 + (x / scale) ** 2))),
        **POSITIVE,
    ),
    "LogNormal": Case(
        {"loc": [0.0, 0.5], "scale": [0.5, 0.25]},
        lambda x, loc, scale: _normal(mp.log(x), loc, scale) - mp.log(x),
        **POSITIVE,
    ),
    "Weibull": Case(
        {"scale": [1.0, 2.5], "concentration": [1.5, 4.0]}, _weibull, **POSITIVE
    ),
    "Pareto": Case(
        {"scale": [0.5, 1.0], "alpha": [3.5, 6.0]},
        lambda x, scale, alpha: (
            mp.log(alpha) + alpha * mp.log(scale) - (alpha + 1) * mp.log(x)
        ),
        lambda scale, alpha: (scale, INF),
        (1.0, 1.5, 4.0),
    ),
    "GeneralizedPareto": Case(
        {
            "loc": [0.0, -0.5, 0.0, 0.0],
            "scale": [1.0, 2.0, 2.0, 1.0],
            "concentration": [0.25, 0.125, -0.25, 0.0],
        },
        _excess,
        _excess_ends,
        (0.125, 1.0, 3.5),
    ),
    "Beta": Case(
        {"concentration1": [0.5, 2.0, 30.0], "concentration0": [0.75, 5.0, 12.0]},
        _beta,
        **UNIT,
    ),
    "Kumaraswamy": Case(
        {"concentration1": [2.0, 1.5], "concentration0": [3.0, 5.0]},
        _kumaraswamy,
        **UNIT,
    ),
    "ContinuousBernoulli": Case(
        {"probs": [0.25, 0.5, 0.5009765625, 0.96875]}, _continuous_bernoulli, **UNIT
    ),
    "RelaxedBernoulli": Case(
        {"temperature": [0.5, 1.5], "probs": [0.25, 0.625]}, _relaxed, **UNIT
    ),
    "Bernoulli": Case(
        {"probs": [0.25, 0.875]},
        _bernoulli,
        lambda **p: (0, 1),
        (0.0, 1.0),
        discrete=True,
    ),
    "Binomial": Case(
        {"total_count": [9.0, 9.0], "probs": [0.25, 0.875]},
        _binomial,
        lambda total_count, probs: (0, total_count),
        (0.0, 2.0, 7.0),
        discrete=True,
    ),
    "Geometric": Case(
        {"probs": [0.25, 0.875]},
        lambda x, probs: mp.log(probs) + x * mp.log1p(-probs),
        **COUNT,
    ),
    "NegativeBinomial": Case(
        {"total_count": [2.5, 10.0], "probs": [0.25, 0.625]},
        _negative_binomial,
        **COUNT,
    ),
    "Poisson": Case(
        {"rate": [0.5, 40.0]},
        lambda x, rate: x * mp.log(rate) - rate - mp.loggamma(x + 1),
        **COUNT,
    ),
}
