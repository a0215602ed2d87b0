"""Student's t-distribution."""

from __future__ import annotations

import math

import taeda
from taeda import inf, nan
from taeda.distributions import Chi2, constraints
from taeda.distributions._elementwise import Elementwise
from taeda.distributions.utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(Elementwise):
    """A normal number over the root of a mean of squares of others.

    Args:
        df: degrees of freedom.
        loc: the centre.
        scale: the width.
    """

    _names = ("df", "loc", "scale")
    arg_constraints = constraints._regions(df="positive", loc="real", scale="positive")
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df, loc=0.0, scale=1.0, validate_args: bool | None = None
    ) -> None:
        self._adopt((df, loc, scale), validate_args)
        self._chi2 = Chi2(self.df)
        self._batch_shape = self.df.size()

    def _copy_rest(self, new) -> None:
        new._chi2 = self._chi2.expand(new.df.shape)

    @property
    def mean(self):
        m = self.loc.clone(memory_format=taeda.contiguous_format)
        m[self.df <= 1] = nan
        return m

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        m = self.df.clone(memory_format=taeda.contiguous_format)
        finite = self.df > 2
        df = self.df[finite]
        m[finite] = self.scale[finite].pow(2) * df / (df - 2)
        m[(self.df <= 2) & (self.df > 1)] = inf
        m[self.df <= 1] = nan
        return m

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * taeda.rsqrt(z / self.df))

    def log_prob(self, value):
        self._checked(value)
        y = (value - self.loc) / self.scale
        z = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + taeda.lgamma(0.5 * self.df)
            - taeda.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * taeda.log1p(y**2.0 / self.df) - z

    def entropy(self):
        half = 0.5 * (self.df + 1)
        lbeta = taeda.lgamma(0.5 * self.df) + math.lgamma(0.5) - taeda.lgamma(half)
        gap = taeda.digamma(half) - taeda.digamma(0.5 * self.df)
        return self.scale.log() + half * gap + 0.5 * self.df.log() + lbeta
