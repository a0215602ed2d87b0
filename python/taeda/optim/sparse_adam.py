"""Adam for sparse gradients."""

from __future__ import annotations

import taeda
from taeda import Tensor
from taeda.optim._options import check, declares_options
from taeda.optim._rule import RuleOptimizer, as_scalar
from taeda.optim.optimizer import ParamsT

__all__ = ["SparseAdam"]


@declares_options
class SparseAdam(RuleOptimizer):
    r"""Adam that touches only the rows that a sparse gradient names.

    Moments and weights of other rows stay as they are, so they do not decay
    (formula as for `Adam`, on the values of the gradient).

    Args:
        params: dense tensors with sparse COO gradients.
        lr (float or Tensor), betas, eps, maximize: as for `Adam`.

    Raises:
        ValueError: an option out of range; a sparse or complex parameter.
        RuntimeError: a dense gradient.

    Example:
        >>> embedding = taeda.nn.Embedding(1000, 8, sparse=True)
        >>> embedding = taeda.nn.Embedding(10, 4, sparse=True)
        >>> optimizer = taeda.optim.SparseAdam(embedding.parameters(), lr=1e-3)
    """

    _takes_sparse = True

    params: ParamsT
    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    maximize: bool = False

    def _check(self, options: dict) -> None:
        super()._check(options)
        for name, label in (("lr", "learning rate"), ("eps", "epsilon value")):
            value = options[name]
            check(value > 0, f"Invalid {label}: {value}")

    def _begin(self, params, options: dict) -> None:
        super()._begin(params, options)
        dense = "requires dense parameter tensors"
        self._refuse("Sparse", lambda p: p.is_sparse, dense)
        self._refuse("Complex", taeda.is_complex, "does not support complex parameters")

    def _refuse(self, kind: str, test, reason: str) -> None:
        found = [
            [number, place]
            for number, group in enumerate(self.param_groups)
            for place, p in enumerate(group["params"])
            if test(p)
        ]
        check(not found, f"{kind} params at indices {found}: SparseAdam {reason}")

    def _fresh(self, p, group) -> dict:
        like = {"memory_format": taeda.preserve_format}
        return {
            "step": 0,
            "exp_avg": taeda.zeros_like(p, **like),
            "exp_avg_sq": taeda.zeros_like(p, **like),
        }

    def _restore_scalars(self, p, group, state: dict) -> None:
        """The step is a plain int here."""

    def _update(self, p, g, group) -> None:
        if not g.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam "
                "instead"
            )
        super()._update(p, g, group)

    def _rule(self, x, g, s, group, t, keep) -> None:
        beta1, beta2 = group["betas"]
        # Moments are not linear in g, so equal indices must be added first.
        g = g.coalesce()
        rows, values = g._indices(), g._values()
        if values.numel() == 0:
            return
        m = _blend(s["exp_avg"], g, rows, values, beta1)
        v = _blend(s["exp_avg_sq"], g, rows, values.pow(2), beta2)
        size = as_scalar(group["lr"]) * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        change = -size * m.div_(v.sqrt_().add_(group["eps"]))
        x.add_(taeda.sparse_coo_tensor(rows, change, g.size()))


def _blend(average, g, rows, values, beta):
    """average <- beta average + (1 - beta) values at the rows; the new values."""
    old = average.sparse_mask(g)._values()
    change = values.sub(old).mul_(1 - beta)
    average.add_(taeda.sparse_coo_tensor(rows, change, g.size()))
    return change.add_(old)
