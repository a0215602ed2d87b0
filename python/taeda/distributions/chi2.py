"""The chi-squared distribution."""

from __future__ import annotations

from taeda.distributions import constraints
from taeda.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of squares of df standard normal numbers.

    Args:
        df: degrees of freedom.
    """

    _names = ("concentration", "rate")
    arg_constraints = constraints._regions(df="positive")

    def __init__(self, df, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        """Degrees of freedom."""
        return self.concentration * 2
