"""AdamW."""

from __future__ import annotations

from taeda import Tensor
from taeda.optim._functional_form import functional_form
from taeda.optim._options import KW_ONLY, declares_options
from taeda.optim.adam import Adam
from taeda.optim.optimizer import ParamsT

__all__ = ["AdamW", "adamw"]


@declares_options
class AdamW(Adam):
    r"""Adam whose weight decay acts on the weights, not through the moments.

    $\theta \leftarrow (1 - \gamma\lambda)\theta$ before Adam's step without L2
    penalty (Loshchilov and Hutter, arXiv:1711.05101).

    Args: as for `Adam`; `weight_decay` (float) is lambda, 0.01 by default.

    Raises:
        ValueError: an option out of range.

    Example:
        >>> optimizer = taeda.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    """

    params: ParamsT
    lr: float | Tensor = 1e-3
    betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2
    amsgrad: bool = False
    _: KW_ONLY
    maximize: bool = False
    foreach: bool | None = None
    capturable: bool = False
    differentiable: bool = False
    fused: bool | None = None

    def _begin(self, params, options: dict) -> None:
        super()._begin(params, {**options, "decoupled_weight_decay": True})

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        # A file written for plain Adam is continued as AdamW.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


adamw = functional_form(
    AdamW,
    "adamw",
    "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach=None capturable=False differentiable=False fused=None "
    "grad_scale=None found_inf=None has_complex=False",
    "amsgrad beta1 beta2 lr weight_decay eps maximize",
)
