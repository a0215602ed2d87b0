"""Muon."""

from __future__ import annotations

import taeda
from taeda.optim._options import check, check_rate, declares_options
from taeda.optim._rule import RuleOptimizer, add_scaled, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["Muon"]


@declares_options
class Muon(RuleOptimizer):
    r"""Momentum whose matrix is made nearly orthogonal before it is applied.

    $B \leftarrow \mu B + (1-\mu) G$; the update is $\mathrm{NS}(B)$, a few steps of
    the Newton-Schulz iteration $X \leftarrow aX + (bA + cA^2)X$, $A = XX^T$, in
    bfloat16 (Jordan et al., 2024, kellerjordan.github.io/posts/muon).

    Args:
        params: 2-D tensors; use another optimizer for the rest.
        lr (float): rate. weight_decay (float): decay off the weights.
        momentum (float): mu. nesterov (bool): look ahead.
        ns_coefficients (three floats): a, b, c. eps (float): least norm.
        ns_steps (int): iterations, fewer than 100.
        adjust_lr_fn (str): "original" (the default) scales the rate by
            sqrt(max(1, rows / columns)), "match_rms_adamw" by
            0.2 sqrt(max(rows, columns)).

    Raises:
        ValueError: an option out of range, a parameter that is not 2-D.
        RuntimeError: complex parameters.

    Example:
        >>> optimizer = taeda.optim.Muon([p for p in model.parameters() if p.ndim == 2])
    """

    _takes_complex = False

    params: ParamsT
    lr: float = 1e-3
    weight_decay: float = 0.1
    momentum: float = 0.95
    nesterov: bool = True
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    eps: float = 1e-7
    ns_steps: int = 5
    adjust_lr_fn: str | None = None

    def _check(self, options: dict) -> None:
        lr, rule = options["lr"], options["adjust_lr_fn"]
        check_rate(lr, f"Learning rate should be >= 0 but is: {lr}")
        for name in ("momentum", "weight_decay"):
            value, label = options[name], name.replace("_", " ")
            check(value >= 0, f"{label} should be >= 0 but is: {value}")
        check(
            rule in (None, "original", "match_rms_adamw"),
            f"Adjust learning rate function {rule} is not supported",
        )

    def _begin(self, params, options: dict) -> None:
        super()._begin(params, options)
        for group in self.param_groups:
            for p in group["params"]:
                check(
                    p.ndim == 2,
                    "Muon only supports 2D parameters whereas we found a parameter "
                    f"with size: {p.size()}",
                )

    def _fresh(self, p, group) -> dict:
        zeros = taeda.zeros_like(p, memory_format=taeda.preserve_format)
        return {"momentum_buffer": zeros}

    def _decayed(self, p, g, group):
        return g  # off the weights, after the update is known

    def _rule(self, x, g, s, group, t, keep) -> None:
        lr, momentum = as_scalar(group["lr"]), group["momentum"]
        buffer = s["momentum_buffer"].lerp_(g, 1 - momentum)
        update = g.lerp(buffer, momentum) if group["nesterov"] else buffer
        coefficients, steps = group["ns_coefficients"], group["ns_steps"]
        update = _orthogonal(update, coefficients, steps, group["eps"])
        x.mul_(1 - lr * group["weight_decay"])
        add_scaled(x, update, -lr * _scale(group["adjust_lr_fn"], *x.shape))


def _scale(rule: str | None, rows: int, columns: int) -> float:
    if rule == "match_rms_adamw":
        return 0.2 * max(rows, columns) ** 0.5
    return max(1, rows / columns) ** 0.5


def _orthogonal(matrix, coefficients, steps: int, eps: float):
    """Newton-Schulz: singular values to about one, in bfloat16."""
    check(steps < 100, "Number of steps must be less than 100")
    check(matrix.dim() == 2, "Input tensor gradient must be a 2D matrix")
    check(len(coefficients) == 3, "Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    # A copy in any case: the division below must not reach the momentum buffer.
    x = matrix.to(taeda.bfloat16, copy=True)
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = taeda.addmm(x, taeda.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
