"""Scaling of losses where each rank has a part of the gradients."""

from __future__ import annotations

import taeda
from taeda.amp.grad_scaler import GradScaler
from taeda.distributed import _collectives as collectives

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` whose ranks agree on whether a gradient was not finite.

    Args:
        device, init_scale, backoff_factor, growth_factor, growth_interval, enabled: as
            for `GradScaler`.
        process_group: the ranks that have parts of one model's gradients; all by
            default.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group=None,
    ) -> None:
        factors = growth_factor, backoff_factor
        super().__init__(device, init_scale, *factors, growth_interval, enabled)
        self.process_group = process_group

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16: bool = True):
        # Parts of gradients of low precision are scaled like others: they are what
        # reduction in low precision leaves.
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, True)
        # A rank without gradients, its parts being empty, agrees all the same.
        device = inv_scale.device
        every = sum((f.to(device) for f in found.values()), taeda.zeros_like(found_inf))
        collectives.all_reduce(every, group=self.process_group)
        if not found:
            return {device: every.clamp(max=1.0)}
        return {place: every.to(place).clamp(max=1.0) for place in found}
