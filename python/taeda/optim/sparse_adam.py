"""Adam for sparse gradients."""

from __future__ import annotations

import taeda
from taeda.optim._rule import RuleOptimizer, as_scalar, check, check_options

__all__ = ["SparseAdam"]


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
        >>> taeda.optim.SparseAdam(embedding.parameters(), lr=1e-3)
    """

    _takes_sparse = True

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_options(lr, betas)
        check(lr > 0, f"Invalid learning rate: {lr}")
        check(eps > 0, f"Invalid epsilon value: {eps}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        places = [
            ([number, place], p)
            for number, group in enumerate(self.param_groups)
            for place, p in enumerate(group["params"])
        ]
        sparse = [at for at, p in places if p.is_sparse]
        check(
            not sparse,
            f"Sparse params at indices {sparse}: SparseAdam requires dense "
            "parameter tensors",
        )
        complex_ = [at for at, p in places if p.is_complex()]
        check(
            not complex_,
            f"Complex params at indices {complex_}: SparseAdam does not support "
            "complex parameters",
        )

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
