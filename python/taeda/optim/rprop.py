"""Resilient backpropagation."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, check, declares_options
from taeda.optim._rule import RuleOptimizer, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Rprop", "rprop"]


@declares_options
class Rprop(RuleOptimizer):
    r"""Steps of a size of their own per weight, in the sign of the gradient.

    The size grows by $\eta_+$ while the sign stays, shrinks by $\eta_-$ when it
    changes (and that gradient is dropped), and stays within `step_sizes`
    (Riedmiller and Braun, ICNN 1993).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): first step size. etas (pair of float): the factors.
        step_sizes (pair of float): least and largest size.
        capturable, foreach, maximize, differentiable (bool): as for `Adam`.

    Raises:
        ValueError: unless 0 < eta- < 1 < eta+.

    Example:
        >>> optimizer = taeda.optim.Rprop(model.parameters(), lr=0.01)
    """

    _order = "lr etas step_sizes foreach maximize differentiable capturable".split()

    params: ParamsT
    lr: float | Tensor = 1e-2
    etas: tuple[float, float] = (0.5, 1.2)
    step_sizes: tuple[float, float] = (1e-6, 50)
    _: KW_ONLY
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    def _check(self, options: dict) -> None:
        super()._check(options)
        less, more = options["etas"]
        check(0 < less < 1 < more, f"Invalid eta values: {less}, {more}")

    def _fresh(self, p, group) -> dict:
        first = float(as_scalar(group["lr"]))
        size = complex(first, first) if p.is_complex() else first
        return {
            "step": self._counter(p, group),
            "prev": taeda.zeros_like(p, memory_format=taeda.preserve_format),
            "step_size": taeda.full_like(p, size),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        shrink, grow = group["etas"]
        agreement = g.mul(keep(s["prev"])).sign()
        turned = agreement < 0
        factor = taeda.ones_like(agreement)
        factor.masked_fill_(agreement > 0, grow).masked_fill_(turned, shrink)
        size = s["step_size"]
        size.mul_(factor).clamp_(*group["step_sizes"])
        g = g.masked_fill(turned, 0)
        x.addcmul_(g.sign(), keep(size), value=-1)
        s["prev"].copy_(g)


rprop = functional_form(
    Rprop,
    "rprop",
    "prevs step_sizes state_steps",
    "foreach=None capturable=False maximize=False differentiable=False "
    "has_complex=False",
    "step_size_min step_size_max etaminus etaplus",
)
