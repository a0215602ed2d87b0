"""The F-distribution."""

from __future__ import annotations

import taeda
from taeda import nan
from taeda.distributions import constraints
from taeda.distributions._elementwise import Elementwise
from taeda.distributions.gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Elementwise):
    """The ratio of two means of squares of normal numbers.

    Args:
        df1: degrees of freedom above.
        df2: degrees of freedom below.
    """

    _names = ("df1", "df2")
    arg_constraints = constraints._regions(df1="positive", df2="positive")
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args: bool | None = None) -> None:
        self._adopt((df1, df2), validate_args)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)

    def _copy_rest(self, new) -> None:
        new._gamma1 = self._gamma1.expand(new.df1.shape)
        new._gamma2 = self._gamma2.expand(new.df1.shape)

    @property
    def mean(self):
        df2 = self.df2.clone(memory_format=taeda.contiguous_format)
        df2[df2 <= 2] = nan
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = nan
        return mode

    @property
    def variance(self):
        df2 = self.df2.clone(memory_format=taeda.contiguous_format)
        df2[df2 <= 4] = nan
        below = self.df1 * (df2 - 2).pow(2) * (df2 - 4)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / below

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x1 = self._gamma1.rsample(sample_shape).view(shape)
        x2 = self._gamma2.rsample(sample_shape).view(shape)
        tiny = taeda.finfo(x2.dtype).tiny
        x2.clamp_(min=tiny)
        y = x1 / x2
        y.clamp_(min=tiny)
        return y

    def log_prob(self, value):
        self._checked(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        weight = (a + b).lgamma() - a.lgamma() - b.lgamma()
        power = a * ratio.log() + (a - 1) * value.log()
        return weight + power - (a + b) * taeda.log1p(ratio * value)
