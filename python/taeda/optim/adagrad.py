"""Adagrad."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim._rule import RuleOptimizer, add_quotient, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Adagrad", "adagrad"]


@declares_options
class Adagrad(RuleOptimizer):
    r"""Steps divided by the root of the sum of all squared gradients.

    $s \leftarrow s + g^2$, $\theta \leftarrow \theta - \frac{\gamma}{1+(t-1)\eta}
    g / (\sqrt s + \epsilon)$ (Duchi et al., JMLR 12, 2011).

    Args:
        params: tensors, (name, tensor) pairs or group dicts; sparse gradients too.
        lr (float or Tensor): rate gamma. lr_decay (float): eta.
        weight_decay (float): L2 penalty.
        initial_accumulator_value (float): s at the start.
        eps (float): added to the denominator.
        foreach, maximize, differentiable, fused (bool): as for `Adam`.

    Raises:
        ValueError: a negative option.

    Example:
        >>> optimizer = taeda.optim.Adagrad(model.parameters(), lr=0.1)
    """

    _takes_sparse = True

    _order = (
        "lr lr_decay eps weight_decay initial_accumulator_value "
        "foreach maximize differentiable fused"
    ).split()

    params: ParamsT
    lr: float | Tensor = 1e-2
    lr_decay: float = 0
    weight_decay: float = 0
    initial_accumulator_value: float = 0
    eps: float = 1e-10
    foreach: bool | None = None
    _: KW_ONLY
    maximize: bool = False
    differentiable: bool = False
    fused: bool | None = None

    def _begin(self, params, options: dict) -> None:
        super()._begin(params, options)
        for group in self.param_groups:
            for p in group["params"]:
                self._state_of(p, group)

    def _fresh(self, p, group) -> dict:
        value = group["initial_accumulator_value"]
        if p.is_complex():
            value = complex(value, value)
        total = taeda.full_like(p, value, memory_format=taeda.preserve_format)
        return {"step": self._counter(p, group), "sum": total}

    def share_memory(self) -> None:
        """Move the sums to shared memory, for several processes to train."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _rule(self, x, g, s, group, t, keep) -> None:
        total, eps = s["sum"], group["eps"]
        rate = as_scalar(group["lr"]) / (1 + (t - 1) * group["lr_decay"])
        if not g.is_sparse:
            total.addcmul_(g, g, value=1)
            add_quotient(x, g, keep(total.sqrt()).add_(eps), -rate)
            return
        # The root is taken of sums, so equal indices must be added first.
        g = g.coalesce()
        values = g._values()
        total.add_(_like(g, values.pow(2)))
        root = total.sparse_mask(g)._values().sqrt_().add_(eps)
        x.add_(_like(g, values / root), alpha=float(-rate))


def _like(g, values):
    return taeda.sparse_coo_tensor(g._indices(), values, g.size())


adagrad = functional_form(
    Adagrad,
    "adagrad",
    "state_sums state_steps",
    "fused=None grad_scale=None found_inf=None has_sparse_grad=False foreach=None "
    "differentiable=False has_complex=False",
    "lr weight_decay lr_decay eps maximize",
)
