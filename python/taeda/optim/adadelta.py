"""Adadelta."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, check, declares_options
from taeda.optim._rule import RuleOptimizer, add_scaled, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Adadelta", "adadelta"]


@declares_options
class Adadelta(RuleOptimizer):
    r"""Steps whose unit is that of the weights.

    $v \leftarrow \rho v + (1-\rho) g^2$, $\Delta = g \sqrt{u+\epsilon} /
    \sqrt{v+\epsilon}$, $u \leftarrow \rho u + (1-\rho) \Delta^2$,
    $\theta \leftarrow \theta - \gamma \Delta$ (Zeiler, arXiv:1212.5701).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): gamma. rho (float): decay of both averages.
        eps (float): see the formula. weight_decay (float): L2 penalty.
        foreach, capturable, maximize, differentiable (bool): as for `Adam`.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.Adadelta(model.parameters())
    """

    _order = (
        "lr rho eps weight_decay maximize capturable foreach differentiable"
    ).split()

    params: ParamsT
    lr: float | Tensor = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0
    foreach: bool | None = None
    _: KW_ONLY
    capturable: bool = False
    maximize: bool = False
    differentiable: bool = False

    def _check(self, options: dict) -> None:
        super()._check(options)
        rho = options["rho"]
        check(0 <= rho <= 1, f"Invalid rho value: {rho}")

    def _fresh(self, p, group) -> dict:
        like = {"memory_format": taeda.preserve_format}
        return {
            "step": self._counter(p, group),
            "square_avg": taeda.zeros_like(p, **like),
            "acc_delta": taeda.zeros_like(p, **like),
        }

    def _rule(self, x, g, s, group, t, keep) -> None:
        rho, eps = group["rho"], group["eps"]
        v, u = s["square_avg"], s["acc_delta"]
        v.mul_(rho).addcmul_(g, g, value=1 - rho)
        root = v.add(eps).sqrt_()
        delta = keep(u.add(eps).sqrt_()).div_(root).mul_(g)
        u.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        add_scaled(x, delta, -as_scalar(group["lr"]))


adadelta = functional_form(
    Adadelta,
    "adadelta",
    "square_avgs acc_deltas state_steps",
    "capturable=False foreach=None differentiable=False has_complex=False",
    "lr rho eps weight_decay maximize",
)
