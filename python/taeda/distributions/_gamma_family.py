"""The gamma distribution and its kin: of sums, ratios and shares of gamma numbers."""

from __future__ import annotations

import math

import taeda
from taeda.distributions import constraints
from taeda.distributions._declare import (
    Expanding,
    Scalar,
    ScalarFamily,
    formula,
    parameters,
    wide,
)
from taeda.distributions.constraints import (
    nonnegative,
    positive,
    real,
    simplex,
    unit_interval,
)
from taeda.distributions.exp_family import ExponentialFamily
from taeda.distributions.utils import _standard_normal, broadcast_all


def _where(condition, value, other: float = math.nan):
    return taeda.where(condition, value, other)


def _gamma_sample(shape, a, b):
    drawn = taeda._standard_gamma(a.expand(shape)) / b
    # A quotient below the least number would have no logarithm.
    drawn.detach().clamp_(min=taeda.finfo(drawn.dtype).tiny)
    return drawn


class Gamma(ScalarFamily):
    """Density proportional to x^(concentration - 1) exp(-rate x).

    Samples are those of G. Marsaglia and W. Tsang ("A simple method for generating
    gamma variables", 2000); they are differentiable by both parameters.

    Args:
        concentration: the shape, often alpha.
        rate: the inverse of the scale, often beta.
    """

    arg_constraints = parameters("a b", concentration=positive, rate=positive)
    support = nonnegative
    mean = formula(lambda a, b: a / b)
    mode = formula(lambda a, b: ((a - 1) / b).clamp(min=0))
    variance = formula(lambda a, b: a / b**2)
    entropy = wide(lambda a, b: a + a.lgamma() + (1 - a) * a.digamma() - b.log())
    _log_density = wide(
        lambda x, a, b: taeda.xlogy(a - 1, x) + taeda.xlogy(a, b) - a.lgamma() - b * x
    )
    cdf = formula(lambda x, a, b: taeda.igamma(a, b * x))
    rsample = formula(_gamma_sample)
    # Of (log x, x).
    _natural_params = formula(lambda a, b: (a - 1, -b))
    _mean_carrier_measure = 0

    def log_prob(self, value):
        """The logarithm of the density; a plain number is taken as a tensor."""
        return self._log_density(taeda.as_tensor(value).to(self.rate))

    def _log_normalizer(self, t, u):
        return (t + 1).lgamma() - (t + 1) * (-u).log()


class Chi2(Gamma):
    """The sum of squares of df standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
        df: degrees of freedom.
    """

    arg_constraints = parameters("n", df=positive)
    _ranks = Gamma._ranks
    df = formula(lambda concentration: 2 * concentration)

    def __init__(self, df, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)


def _log_beta(a, b):
    return a.lgamma() + b.lgamma() - (a + b).lgamma()


def _dirichlet_mode(a):
    """Of concentrations above 1 (one below counts as 1); else the likeliest corner."""
    excess = (a - 1).clamp(min=0)
    corner = taeda.zeros_like(a).scatter(-1, a.argmax(-1, keepdim=True), 1.0)
    inside = excess / excess.sum(-1, keepdim=True)
    return taeda.where((a < 1).all(-1, keepdim=True), corner, inside)


class Dirichlet(Expanding, ExponentialFamily):
    """Probabilities that sum to 1, with the density proportional to prod x^(a - 1).

    Args:
        concentration: a, along the last dim.
    """

    arg_constraints = parameters(
        "a", concentration=constraints.independent(positive, 1)
    )
    support = simplex
    _total = formula(lambda a: a.sum(-1, keepdim=True))
    mean = formula(lambda a, _total: a / _total)
    mode = formula(_dirichlet_mode)
    variance = formula(lambda mean, _total: mean * (1 - mean) / (_total + 1))
    entropy = wide(
        lambda a, _total: (
            (a.lgamma() - (a - 1) * (a.digamma() - _total.digamma())).sum(-1)
            - a.sum(-1).lgamma()
        )
    )
    log_prob = wide(
        lambda x, a: (taeda.xlogy(a - 1, x) - a.lgamma()).sum(-1) + a.sum(-1).lgamma()
    )
    rsample = formula(lambda shape, a: taeda._sample_dirichlet(a.expand(shape)))
    # Of log x; the measure is 1 / prod x.
    _natural_params = formula(lambda a: (a,))

    def __init__(self, concentration, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError(
                "`concentration` parameter must be at least one-dimensional."
            )
        self.concentration = concentration
        *batch, count = concentration.shape
        super().__init__(batch, (count,), validate_args=validate_args)

    def _log_normalizer(self, t):
        return t.lgamma().sum(-1) - t.sum(-1).lgamma()


class Beta(Expanding, ExponentialFamily):
    """Density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1).

    Its numbers are the first of two that have a Dirichlet distribution.

    Args:
        concentration1: often alpha.
        concentration0: often beta.
    """

    arg_constraints = parameters(
        "a b", concentration1=positive, concentration0=positive
    )
    support = unit_interval
    has_rsample = True
    _nested = ("_dirichlet",)
    concentration1 = formula(lambda _dirichlet: _dirichlet.concentration[..., 0])
    concentration0 = formula(lambda _dirichlet: _dirichlet.concentration[..., 1])
    mean = formula(lambda _dirichlet: _dirichlet.mean[..., 0])
    mode = formula(lambda _dirichlet: _dirichlet.mode[..., 0])
    variance = formula(lambda _dirichlet: _dirichlet.variance[..., 0])
    entropy = formula(lambda _dirichlet: _dirichlet.entropy())
    log_prob = wide(
        lambda x, a, b: (
            taeda.xlogy(a - 1, x) + taeda.special.xlog1py(b - 1, -x) - _log_beta(a, b)
        )
    )
    # Of (log x, log(1 - x)); the measure is 1 / (x (1 - x)).
    _natural_params = formula(lambda a, b: (a, b))
    _log_normalizer = staticmethod(_log_beta)

    def __init__(
        self, concentration1, concentration0, validate_args: bool | None = None
    ) -> None:
        pair = taeda.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(pair, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        """Samples, differentiable by both concentrations."""
        return self._dirichlet.rsample(sample_shape).select(-1, 0)


def _student_norm(n, s):
    """-log of the density at the centre."""
    return _log_beta(0.5 * n, taeda.full_like(n, 0.5)) + 0.5 * n.log() + s.log()


class StudentT(Scalar):
    """A normal number over the root of the mean of df squares of others.

    Args:
        df: degrees of freedom.
        loc: the centre.
        scale: the width.
    """

    _defaults = {"loc": 0.0, "scale": 1.0}
    arg_constraints = parameters("n m s", df=positive, loc=real, scale=positive)
    support = real
    has_rsample = True
    _nested = ("_chi2",)
    mean = formula(lambda n, m: _where(n > 1, m))
    mode = formula(lambda m: m)
    variance = formula(
        lambda n, s: _where(n > 2, s**2 * n / (n - 2), _where(n > 1, math.inf))
    )
    entropy = wide(
        lambda n, s: (
            _student_norm(n, s)
            + 0.5 * (n + 1) * ((0.5 * n + 0.5).digamma() - (0.5 * n).digamma())
        )
    )
    log_prob = wide(
        lambda x, n, m, s: (
            -0.5 * (n + 1) * (((x - m) / s) ** 2 / n).log1p() - _student_norm(n, s)
        )
    )

    def _complete(self) -> None:
        self._chi2 = Chi2(self.df)

    def rsample(self, sample_shape=()):
        """Samples, differentiable by all parameters."""
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * normal * (self.df / squares).sqrt()


def _f_variance(a, b):
    finite = 2 * (b / (b - 2)) ** 2 * (a + b - 2) / (a * (b - 4))
    return _where(b > 4, finite)


def _f_density(x, a, b):
    powers = 0.5 * a * (a / b).log() + taeda.xlogy(0.5 * a - 1, x)
    rest = 0.5 * (a + b) * (a / b * x).log1p()
    return powers - rest - _log_beta(0.5 * a, 0.5 * b)


class FisherSnedecor(Scalar):
    """The ratio of two means of squares of normal numbers.

    Args:
        df1: degrees of freedom above.
        df2: degrees of freedom below.
    """

    arg_constraints = parameters("a b", df1=positive, df2=positive)
    support = positive
    has_rsample = True
    _nested = ("_gamma1", "_gamma2")
    mean = formula(lambda b: _where(b > 2, b / (b - 2)))
    mode = formula(lambda a, b: _where(a > 2, (a - 2) * b / (a * (b + 2))))
    variance = formula(_f_variance)
    log_prob = wide(_f_density)

    def _complete(self) -> None:
        self._gamma1 = Gamma(0.5 * self.df1, self.df1)
        self._gamma2 = Gamma(0.5 * self.df2, self.df2)

    def rsample(self, sample_shape=()):
        """Samples, differentiable by both parameters."""
        above = self._gamma1.rsample(sample_shape)
        below = self._gamma2.rsample(sample_shape)
        return (above / below).clamp(min=taeda.finfo(above.dtype).tiny)
