"""Stochastic gradient descent."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, check, declares_options
from taeda.optim._rule import RuleOptimizer, add_scaled, as_scalar, differentiates
from taeda.optim.optimizer import ParamsT

__all__ = ["SGD", "sgd"]


@declares_options
class SGD(RuleOptimizer):
    r"""Stochastic gradient descent with momentum.

    $b \leftarrow \mu b + (1-\tau) g$ and $\theta \leftarrow \theta - \gamma b$, with
    $g + \mu b$ in place of $b$ for Nesterov's form (Sutskever et al., ICML 2013).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): rate gamma.
        momentum (float): mu. dampening (float): tau.
        weight_decay (float): L2 penalty. nesterov (bool): look ahead.
        maximize (bool): ascend. foreach, fused (bool): False takes the plain loop.
        differentiable (bool): let autograd follow the step.

    Raises:
        ValueError: a negative option; Nesterov without momentum or with dampening.

    Example:
        >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    """

    _takes_sparse = True
    _splits_complex = False

    params: ParamsT
    lr: float | Tensor = 1e-3
    momentum: float = 0
    dampening: float = 0
    weight_decay: float | Tensor = 0
    nesterov: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    differentiable: bool = False
    fused: bool | None = None

    def _check(self, options: dict) -> None:
        super()._check(options)
        looks_ahead = options["momentum"] > 0 and options["dampening"] == 0
        check(
            looks_ahead or not options["nesterov"],
            "Nesterov momentum requires a momentum and zero dampening",
        )

    def _fresh(self, p, group) -> dict:
        return {}

    def _state_of(self, p, group) -> dict:
        # Without momentum nothing is kept, not even an empty entry.
        return self.state[p] if group["momentum"] != 0 else {}

    def _lists_take_tensor_lr(self, group) -> bool:
        return not (differentiates(group["lr"]) or differentiates(group["momentum"]))

    def _launch_all(self, group, plan, grads) -> None:
        if group["momentum"] == 0:
            super()._launch_all(group, plan, grads)
            return
        missing = [s for s in plan.states if s.get("momentum_buffer") is None]
        if not missing:
            super()._launch_all(group, plan, grads)
        elif group.get("fused") and len(missing) == len(grads):
            # A first step is undamped. The kernel makes the buffers and heeds the
            # gradient scaler, which the loop does not know.
            for p, s in zip(plan.params, plan.states, strict=True):
                s["momentum_buffer"] = taeda.empty_like(p)
            self._launch(group, plan.params, grads, plan.states, first=True)
        else:
            for p, g in zip(plan.params, grads, strict=True):
                self._update(p, g, group)

    def _launch(self, group, params, grads, states, first: bool = False) -> None:
        buffers = []
        if group["momentum"] != 0:
            buffers = [s["momentum_buffer"] for s in states]
        taeda._fused_sgd_(
            params,
            grads,
            buffers,
            weight_decay=float(group["weight_decay"]),
            momentum=group["momentum"],
            lr=float(group["lr"]),
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            is_first_step=first,
            **self._scaling(),
        )

    def _rule(self, x, g, s, group, t, keep) -> None:
        momentum = group["momentum"]
        if momentum != 0:
            buffer = s.get("momentum_buffer")
            if buffer is None:
                buffer = s["momentum_buffer"] = g.detach().clone()
            else:
                buffer.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(buffer, alpha=momentum) if group["nesterov"] else keep(buffer)
        add_scaled(x, g, -as_scalar(group["lr"]))


sgd = functional_form(
    SGD,
    "sgd",
    "momentum_buffer_list",
    "has_sparse_grad=False foreach=None fused=None grad_scale=None found_inf=None",
    "weight_decay momentum lr dampening nesterov maximize",
    gradients="d_p_list",
)
