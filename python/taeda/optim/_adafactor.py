"""Adafactor."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._options import KW_ONLY, check, check_rate, declares_options
from taeda.optim._rule import RuleOptimizer, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Adafactor"]


@declares_options
class Adafactor(RuleOptimizer):
    r"""Adam's second moment of a matrix, kept as one row and one column.

    $\hat V = R C / \overline{R}$ with $R$, $C$ running means of $g^2$ along rows and
    columns, decayed by $1 - t^{\tau}$; the update $g/\sqrt{\hat V}$ is clipped to
    root mean square $d$ and scaled by $\min(\gamma, 1/\sqrt t)\max(\epsilon_2,
    \mathrm{rms}(\theta))$ (Shazeer and Stern, arXiv:1804.04235).

    Args:
        params: tensors, (name, tensor) pairs or group dicts.
        lr (float or Tensor): gamma. beta2_decay (float): tau.
        eps (pair): eps1 (None: that of the dtype) and eps2. d (float): see above.
        weight_decay (float): decay off the weights.
        foreach, maximize (bool): as for `Adam`.

    Raises:
        ValueError: an option out of range. RuntimeError: complex parameters.

    Example:
        >>> optimizer = taeda.optim.Adafactor(model.parameters(), lr=0.01)
    """

    _takes_complex = False

    params: ParamsT
    lr: float | Tensor = 1e-2
    beta2_decay: float = -0.8
    eps: tuple[float | None, float] = (None, 1e-3)
    d: float = 1.0
    weight_decay: float = 0.0
    _: KW_ONLY
    foreach: bool | None = None
    maximize: bool = False

    def _check(self, options: dict) -> None:
        lr, decay, d = options["lr"], options["beta2_decay"], options["d"]
        check_rate(lr, f"Learning rate should be >= 0 but is: {lr}")
        check(decay <= 0, f"beta2_decay should be <= 0 but is: {decay}")
        check(d >= 1, f"Clipping threshold d should be >= 1 but is: {d}")
        least = dict(zip(("epsilon1", "epsilon2"), options["eps"], strict=True))
        least["weight_decay"] = options["weight_decay"]
        for name, value in least.items():
            valid = (value is None and name == "epsilon1") or value >= 0
            check(valid, f"{name} should be >= 0 but is: {value}")

    def _fresh(self, p, group) -> dict:
        state = {"step": self._counter(p, group)}
        shape = list(p.shape)
        if len(shape) > 1:
            state["row_var"] = p.new_zeros([*shape[:-1], 1])
            state["col_var"] = p.new_zeros([*shape[:-2], 1, shape[-1]])
        else:
            state["variance"] = taeda.zeros_like(p)
        return state

    def _decayed(self, p, g, group):
        return g  # after the size of p has been measured

    def _rule(self, x, g, s, group, t, keep) -> None:
        lr, (eps1, eps2) = float(as_scalar(group["lr"])), group["eps"]
        eps1 = taeda.finfo(x.dtype).eps if eps1 is None else eps1
        fresh = t ** group["beta2_decay"]
        rms = x.norm(2).item() / x.numel() ** 0.5
        rate = max(eps2, rms) * min(lr, 1 / t**0.5)
        if group["weight_decay"] != 0:
            x.mul_(1 - lr * group["weight_decay"])
        if g.dim() > 1:
            estimate = _factored(g, s["row_var"], s["col_var"], fresh, eps1)
        else:
            estimate = s["variance"].lerp_(g * g, fresh).clone()
        update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(g)
        limit = update.numel() ** 0.5 * group["d"]
        x.add_(update, alpha=-rate / max(1.0, update.norm(2).item() / limit))


def _factored(g, row, column, fresh, eps1):
    for average, dim in ((row, -1), (column, -2)):
        mean = taeda.norm(g, dim=dim, keepdim=True).square_().div_(g.size(dim))
        average.lerp_(mean, fresh)
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))
