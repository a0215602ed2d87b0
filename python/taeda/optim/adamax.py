"""Adamax."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim._rule import RuleOptimizer, add_quotient, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Adamax", "adamax"]


@declares_options
class Adamax(RuleOptimizer):
    r"""Adam with the infinity norm in place of the second moment.

    $m \leftarrow \beta_1 m + (1-\beta_1) g$, $u \leftarrow \max(\beta_2 u, |g| +
    \epsilon)$, $\theta \leftarrow \theta - \frac{\gamma}{1-\beta_1^t} m / u$
    (Kingma and Ba, arXiv:1412.6980, section 7.1).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): gamma. betas (pair of float): decays.
        eps (float): see the formula. weight_decay (float): L2 penalty.
        foreach, maximize, differentiable, capturable (bool): as for `Adam`.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.Adamax(model.parameters(), lr=2e-3)
    """

    params: ParamsT
    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    def _fresh(self, p, group) -> dict:
        like = {"memory_format": taeda.preserve_format}
        return {
            "step": self._counter(p, group),
            "exp_avg": taeda.zeros_like(p, **like),
            "exp_inf": taeda.zeros_like(p, **like),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        beta1, beta2 = group["betas"]
        m, u = s["exp_avg"], s["exp_inf"]
        m.lerp_(g, 1 - beta1)
        u.copy_(taeda.maximum(keep(u.mul_(beta2)), g.abs().add_(group["eps"])))
        rate = as_scalar(group["lr"]) / (1 - beta1**t)
        add_quotient(x, keep(m), keep(u), -rate)


adamax = functional_form(
    Adamax,
    "adamax",
    "exp_avgs exp_infs state_steps",
    "foreach=None maximize=False differentiable=False capturable=False "
    "has_complex=False",
    "eps beta1 beta2 lr weight_decay",
)
