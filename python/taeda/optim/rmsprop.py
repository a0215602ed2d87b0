"""RMSprop."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import check, declares_options
from taeda.optim._rule import RuleOptimizer, add_quotient, add_scaled, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["RMSprop", "rmsprop"]


@declares_options
class RMSprop(RuleOptimizer):
    r"""Gradients divided by a running root mean square.

    $v \leftarrow \alpha v + (1-\alpha) g^2$, $\theta \leftarrow \theta - \gamma g /
    (\sqrt v + \epsilon)$ (Tieleman and Hinton, Coursera lecture 6.5); `centered`
    takes the squared mean off $v$ (Graves, arXiv:1308.0850).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): rate gamma. alpha (float): decay of the average.
        eps (float): added to the denominator. weight_decay (float): L2 penalty.
        momentum (float): heavy-ball momentum. centered (bool): see above.
        capturable, foreach, maximize, differentiable (bool): as for `Adam`.

    Raises:
        ValueError: a negative option.

    Example:
        >>> optimizer = taeda.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    """

    _order = (
        "lr momentum alpha eps centered weight_decay "
        "capturable foreach maximize differentiable"
    ).split()

    params: ParamsT
    lr: float | Tensor = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0
    momentum: float = 0
    centered: bool = False
    capturable: bool = False
    foreach: bool | None = None
    maximize: bool = False
    differentiable: bool = False

    def _check(self, options: dict) -> None:
        super()._check(options)
        alpha = options["alpha"]
        check(alpha >= 0, f"Invalid alpha value: {alpha}")

    def _fresh(self, p, group) -> dict:
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] > 0 else []
        names += ["grad_avg"] if group["centered"] else []
        state = {"step": self._counter(p, group)}
        for name in names:
            state[name] = taeda.zeros_like(p, memory_format=taeda.preserve_format)
        return state

    def _launch(self, group, params, grads, states) -> None:
        taeda._foreach_add_([s["step"] for s in states], 1)
        momentum, centered = group["momentum"], group["centered"]
        taeda._fused_rmsprop_(
            params,
            grads,
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if centered else [],
            [s["momentum_buffer"] for s in states] if momentum > 0 else [],
            lr=float(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=float(group["weight_decay"]),
            momentum=momentum,
            centered=centered,
            maximize=group["maximize"],
        )

    def _rule(self, x, g, s, group, t, keep) -> None:
        alpha, lr = group["alpha"], as_scalar(group["lr"])
        v = s["square_avg"]
        v.mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            mean = s["grad_avg"]
            mean.lerp_(g, 1 - alpha)
            root = v.addcmul(keep(mean), keep(mean), value=-1).sqrt_()
        else:
            root = v.sqrt()
        root = keep(root).add_(group["eps"])
        if group["momentum"] > 0:
            buffer = s["momentum_buffer"]
            buffer.mul_(group["momentum"]).addcdiv_(g, root)
            add_scaled(x, keep(buffer), -lr)
        else:
            add_quotient(x, g, root, -lr)


rmsprop = functional_form(
    RMSprop,
    "rmsprop",
    "square_avgs grad_avgs momentum_buffer_list state_steps",
    "foreach=None maximize=False differentiable=False capturable=False "
    "has_complex=False",
    "lr alpha eps weight_decay momentum centered",
)
