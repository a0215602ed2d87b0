"""NAdam."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim._rule import RuleOptimizer, add_quotient, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["NAdam", "nadam"]


@declares_options
class NAdam(RuleOptimizer):
    r"""Adam with Nesterov momentum and a momentum schedule.

    $\mu_t = \beta_1 (1 - \frac12 0.96^{t\psi})$ and $\theta \leftarrow \theta - \gamma
    \left(\frac{(1-\mu_t) g}{1-\prod_{i\le t}\mu_i} + \frac{\mu_{t+1} m}{1-
    \prod_{i\le t+1}\mu_i}\right) / (\sqrt{\hat v} + \epsilon)$ (Dozat, 2016).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): gamma. betas (pair of float): decays.
        eps (float), weight_decay (float): as for `Adam`.
        momentum_decay (float): psi.
        decoupled_weight_decay (bool): decay as `AdamW` does.
        foreach, maximize, capturable, differentiable (bool): as for `Adam`.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.NAdam(model.parameters(), lr=2e-3)
    """

    _scalars = ("step", "mu_product")

    _order = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay "
        "maximize foreach capturable differentiable"
    ).split()

    params: ParamsT
    lr: float | Tensor = 2e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    momentum_decay: float = 4e-3
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
            "mu_product": self._counter(p, group, start=1.0),
            "exp_avg": taeda.zeros_like(p, **like),
            "exp_avg_sq": taeda.zeros_like(p, **like),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        beta1, beta2 = group["betas"]
        lr, psi = as_scalar(group["lr"]), group["momentum_decay"]
        m, v, product = s["exp_avg"], s["exp_avg_sq"], s["mu_product"]
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (t * psi))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((t + 1) * psi))
        product *= mu
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = v.div(1 - beta2**t).sqrt()
        if group["capturable"] or group["differentiable"]:
            root = root.add(group["eps"])
            x.addcdiv_(g * (-lr * (1.0 - mu) / (1.0 - product)), root)
            x.addcdiv_(m * (-lr * mu_next / (1.0 - product * mu_next)), root)
            return
        root.add_(group["eps"])
        product = product.item()
        add_quotient(x, g, root, -lr * (1.0 - mu) / (1.0 - product))
        add_quotient(x, m, root, -lr * mu_next / (1.0 - product * mu_next))


nadam = functional_form(
    NAdam,
    "nadam",
    "exp_avgs exp_avg_sqs mu_products state_steps",
    "decoupled_weight_decay=False foreach=None capturable=False "
    "differentiable=False has_complex=False maximize=False",
    "beta1 beta2 lr weight_decay momentum_decay eps",
)
