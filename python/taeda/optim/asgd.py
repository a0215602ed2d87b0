"""Averaged stochastic gradient descent."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import declares_options
from taeda.optim._rule import RuleOptimizer, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["ASGD", "asgd"]


@declares_options
class ASGD(RuleOptimizer):
    r"""Gradient descent that also keeps an average of its iterates.

    $\theta \leftarrow (1 - \lambda\eta_t)\theta - \eta_t g$, $\eta_t = \gamma /
    (1+\lambda\gamma t)^\alpha$, and from step `t0` on the state "ax" averages
    $\theta$ (Polyak and Juditsky, SIAM J. Control Optim. 30, 1992).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): gamma. lambd (float): lambda. alpha (float): power.
        t0 (float): step at which averaging starts. weight_decay (float): L2.
        foreach, maximize, differentiable, capturable (bool): as for `Adam`.

    Raises:
        ValueError: a negative option.

    Example:
        >>> optimizer = taeda.optim.ASGD(model.parameters(), lr=0.01, t0=1000)
    """

    _scalars = ("step", "eta", "mu")

    params: ParamsT
    lr: float | Tensor = 1e-2
    lambd: float = 1e-4
    alpha: float = 0.75
    t0: float = 1e6
    weight_decay: float = 0
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False
    capturable: bool = False

    def _fresh(self, p, group) -> dict:
        eta = self._counter(p, group).to(p.device)
        return {
            "step": taeda.zeros_like(eta),
            "eta": eta.fill_(as_scalar(group["lr"])),
            "mu": taeda.ones_like(eta),
            "ax": taeda.zeros_like(p, memory_format=taeda.preserve_format),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        lr, decay, alpha = as_scalar(group["lr"]), group["lambd"], group["alpha"]
        eta, mu, average = s["eta"], s["mu"], s["ax"]
        if group["capturable"]:
            x.mul_(1 - decay * eta)
            x.addcmul_(g, eta, value=-1)
            average.add_(x.sub(average).mul_(mu))
            mu.copy_(1 / taeda.clamp(t - group["t0"], min=1))
        else:
            rate = eta.item()
            x.mul_(1 - decay * rate)
            x.add_(g, alpha=-rate)
            if mu.item() == 1:
                average.copy_(x)
            else:
                average.add_(x.sub(average).mul_(mu))
            mu.fill_(1 / max(1, t - group["t0"]))
        # PyTorch's list form rounds the rate to the counter's dtype at every step.
        t = s["step"] if group["foreach"] else t
        eta.copy_(taeda.as_tensor(lr / ((1 + decay * lr * t) ** alpha)))


asgd = functional_form(
    ASGD,
    "asgd",
    "axs mus etas state_steps",
    "foreach=None maximize=False differentiable=False capturable=False "
    "has_complex=False",
    "lambd lr t0 alpha weight_decay",
)
