"""RAdam."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim._rule import RuleOptimizer, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["RAdam", "radam"]


@declares_options
class RAdam(RuleOptimizer):
    r"""Adam with its variance rectified in the first steps.

    With $\rho_\infty = 2/(1-\beta_2) - 1$ and $\rho_t = \rho_\infty - 2t\beta_2^t /
    (1-\beta_2^t)$, the adaptive step is scaled by $\sqrt{\frac{(\rho_t-4)(\rho_t-2)
    \rho_\infty}{(\rho_\infty-4)(\rho_\infty-2)\rho_t}}$ once $\rho_t > 5$ and left
    out before (Liu et al., arXiv:1908.03265).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor), betas, eps, weight_decay: as for `Adam`.
        decoupled_weight_decay (bool): decay as `AdamW` does.
        foreach, maximize, capturable, differentiable (bool): as for `Adam`.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.RAdam(model.parameters(), lr=1e-3)
    """

    _order = (
        "lr betas eps weight_decay maximize "
        "foreach capturable decoupled_weight_decay differentiable"
    ).split()

    params: ParamsT
    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    decoupled_weight_decay: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False

    def _fresh(self, p, group) -> dict:
        like = {"memory_format": taeda.preserve_format}
        return {
            "step": self._counter(p, group),
            "exp_avg": taeda.zeros_like(p, **like),
            "exp_avg_sq": taeda.zeros_like(p, **like),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        beta1, beta2 = group["betas"]
        m, v = s["exp_avg"], s["exp_avg_sq"]
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        unseen = 1 - beta2**t
        rho_end = 2 / (1 - beta2) - 1
        rho = rho_end - 2 * t * beta2**t / unseen
        change = m / (1 - beta1**t) * as_scalar(group["lr"])

        def rectified():
            now = (rho - 4) * (rho - 2) * rho_end
            scale = (now / ((rho_end - 4) * (rho_end - 2) * rho)) ** 0.5
            return unseen**0.5 / keep(v.sqrt()).add_(group["eps"]), scale

        if group["capturable"]:
            adaptive, scale = rectified()
            change = change * taeda.where(rho > 5.0, scale * adaptive, 1.0)
        elif rho > 5.0:
            adaptive, scale = rectified()
            change = change * adaptive * scale
        x.sub_(change)


radam = functional_form(
    RAdam,
    "radam",
    "exp_avgs exp_avg_sqs state_steps",
    "decoupled_weight_decay=False foreach=None differentiable=False "
    "capturable=False has_complex=False maximize=False",
    "beta1 beta2 lr weight_decay eps",
)
