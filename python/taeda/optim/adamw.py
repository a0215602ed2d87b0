"""AdamW."""

from __future__ import annotations

from taeda.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    r"""Adam whose weight decay acts on the weights, not through the moments.

    $\theta \leftarrow (1 - \gamma\lambda)\theta$ before Adam's step without L2
    penalty (Loshchilov and Hutter, arXiv:1711.05101).

    Args: as for `Adam`; `weight_decay` (float) is lambda, 0.01 by default.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> taeda.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        flags = {"maximize": maximize, "foreach": foreach, "capturable": capturable}
        flags |= {"differentiable": differentiable, "fused": fused}
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            decoupled_weight_decay=True,
            **flags,
        )

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        # A file written for plain Adam is continued as AdamW.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
