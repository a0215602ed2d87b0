"""Adam."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, check, declares_options
from taeda.optim._rule import RuleOptimizer, add_quotient, as_scalar, differentiates
from taeda.optim.optimizer import ParamsT

__all__ = ["Adam", "adam"]


@declares_options
class Adam(RuleOptimizer):
    r"""Adam: steps scaled by running moments of the gradient.

    $m \leftarrow \beta_1 m + (1-\beta_1) g$, $v \leftarrow \beta_2 v + (1-\beta_2)
    g^2$, $\theta \leftarrow \theta - \gamma \hat m / (\sqrt{\hat v} + \epsilon)$ where
    $\hat m = m/(1-\beta_1^t)$, $\hat v = v/(1-\beta_2^t)$ (Kingma and Ba,
    arXiv:1412.6980; `amsgrad` keeps the largest $v$: Reddi et al., ICLR 2018).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): rate gamma.
        betas (pair of float or Tensor): decay of the two moments.
        eps (float): added to the denominator.
        weight_decay (float): L2 penalty, or decay off the weights themselves with
            `decoupled_weight_decay`.
        amsgrad (bool), maximize (bool): variants.
        foreach, fused (bool): False takes the plain loop.
        capturable, differentiable (bool): keep counters on the device; let
            autograd follow the step.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.Adam(model.parameters(), lr=3e-4)
    """

    _order = (
        "lr betas eps weight_decay amsgrad maximize "
        "foreach capturable differentiable fused decoupled_weight_decay"
    ).split()

    params: ParamsT
    lr: float | Tensor = 1e-3
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0
    amsgrad: bool = False
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None
    decoupled_weight_decay: bool = False

    def _check(self, options: dict) -> None:
        super()._check(options)
        lists = bool(options["foreach"]) and not options["capturable"]
        _check_tensors(options["lr"], options["betas"], lists)
        options["betas"] = tuple(map(as_scalar, options["betas"]))

    def _fresh(self, p, group) -> dict:
        state = {
            "step": self._counter(p, group),
            "exp_avg": taeda.zeros_like(p, memory_format=taeda.preserve_format),
            "exp_avg_sq": taeda.zeros_like(p, memory_format=taeda.preserve_format),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = taeda.zeros_like(
                p, memory_format=taeda.preserve_format
            )
        return state

    def _launch(self, group, params, grads, states) -> None:
        kernel = (
            taeda._fused_adamw_
            if group["decoupled_weight_decay"]
            else taeda._fused_adam_
        )
        steps = [s["step"] for s in states]
        largest = [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []
        beta1, beta2 = group["betas"]
        scaling = self._scaling()
        taeda._foreach_add_(steps, 1)
        kernel(
            params,
            grads,
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            largest,
            steps,
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=float(group["weight_decay"]),
            eps=group["eps"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
            **scaling,
        )
        if scaling["found_inf"] is not None:
            # An overflowed step was skipped, so it does not count.
            taeda._foreach_sub_(steps, [scaling["found_inf"]] * len(steps))

    def _rule(self, x, g, s, group, t, keep) -> None:
        beta1, beta2 = (_plain(b) for b in group["betas"])
        m, v = s["exp_avg"], s["exp_avg_sq"]
        m.lerp_(g, 1 - beta1)
        if differentiates(beta2):
            v.lerp_(g.square(), 1 - beta2)
        else:
            v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if group["amsgrad"]:
            largest = s["max_exp_avg_sq"]
            largest.copy_(taeda.maximum(keep(largest), v))
            v = largest
        lr, eps = as_scalar(group["lr"]), group["eps"]
        if group["capturable"] or group["differentiable"]:
            # 0-d tensors throughout: the step size goes into the denominator.
            t = keep(s["step"])
            size = -(lr / (1 - beta1**t))
            root = (1 - beta2**t).sqrt() * size
            x.addcdiv_(keep(m), (v.sqrt() / root).add_(eps / size))
            return
        denominator = (v.sqrt() / (1 - beta2**t) ** 0.5).add_(eps)
        add_quotient(x, m, denominator, -(lr / (1 - beta1**t)))


def _plain(beta):
    """A float, unless autograd follows the tensor."""
    if isinstance(beta, taeda.Tensor) and not beta.requires_grad:
        return beta.item()
    return beta


def _check_tensors(lr, betas, lists: bool) -> None:
    tensor = [isinstance(b, taeda.Tensor) for b in betas]
    floats = all(isinstance(b, float) for b in betas)
    check(all(tensor) or floats, "betas must be either both floats or both Tensors")
    for place, beta in enumerate(betas):
        if tensor[place]:
            check(beta.numel() == 1, f"Tensor betas[{place}] must be 1-element")
    named = [("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])]
    for name, value in named:
        check(
            not (lists and isinstance(value, taeda.Tensor)),
            f"{name} as a Tensor is not supported for capturable=False and "
            "foreach=True",
        )


adam = functional_form(
    Adam,
    "adam",
    "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach=None capturable=False differentiable=False fused=None "
    "grad_scale=None found_inf=None has_complex=False "
    "decoupled_weight_decay=False",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
