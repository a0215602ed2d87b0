"""The methods of FullyShardedDataParallel about gradients."""

from __future__ import annotations

import math
from contextlib import contextmanager

import taeda
from taeda.distributed import _collectives as collectives

from ._group import Group, in_backward
from ._setup import HYBRID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GradientMethods"]


class GradientMethods:
    """When gradients are sent, by what, and how large they may be."""

    @contextmanager
    def no_sync(self):
        """Within it gradients stay whole and are not sent; a later pass sends all."""
        groups = self._groups()
        before = [(g.sync, g.reshard_after_backward) for g in groups]
        for wrapper in self.fsdp_modules(self):
            if wrapper._group is not None:
                wrapper._group.sync = False
                wrapper._group.reshard_after_backward = wrapper._fsdp_unit.reshard
        try:
            yield
        finally:
            for group, (sync, reshard) in zip(groups, before, strict=True):
                group.sync, group.reshard_after_backward = sync, reshard

    def _groups(self) -> list[Group]:
        wrappers = self.fsdp_modules(self)
        return [w._group for w in wrappers if w._group is not None]

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Sends gradients by `hook(state, gradients[, part])` in place of averaging.

        Args:
            state: given to the hook.
            hook: fills `part` from the flat gradients; without shards it changes the
                gradients in place.

        Raises:
            AssertionError: not the outermost wrapper, or there is a hook.
            AttributeError: a HYBRID strategy.
        """
        if not self.check_is_root():
            raise AssertionError(
                "register_comm_hook can only be called on a root instance."
            )
        for wrapper in self.fsdp_modules(self):
            if wrapper.sharding_strategy in HYBRID:
                raise AssertionError(
                    f"Communication hook is currently not supported for "
                    f"{wrapper.sharding_strategy}."
                )
            group = wrapper._group
            if group is not None:
                if group.comm_hook is not None:
                    raise AssertionError("A communication hook is already registered")
                group.comm_hook = state, hook

    # Gradients.

    @taeda.no_grad()
    def clip_grad_norm_(self, max_norm: float | int, norm_type: float | int = 2.0):
        """Scales all gradients so that their norm over all ranks is at most `max_norm`.

        Args:
            max_norm: the limit.
            norm_type: of the norm; may be inf.

        Returns:
            The norm before, without dimensions, equal at all ranks.

        Raises:
            RuntimeError: called on a wrapper within another, or in a backward pass.
        """
        if in_backward():
            raise RuntimeError("clip_grad_norm_: called within a backward pass")
        if not self.check_is_root():
            raise RuntimeError(
                "`clip_grad_norm_()` should only be called on the root FSDP instance"
            )
        power = float(norm_type)
        split = {
            id(p) for g in self._groups() if g.ranks.world > 1 for p in g.layout.seen()
        }
        own = [p for p in self.parameters() if p.grad is not None]
        parts = [p.grad for p in own if id(p) in split]
        whole = [p.grad for p in own if id(p) not in split]
        total = _power_sum(parts, power, self.compute_device)
        if split:
            largest = math.isinf(power)
            op = collectives.ReduceOp.MAX if largest else collectives.ReduceOp.SUM
            collectives.all_reduce(total, op, self._ranks.shard)
        rest = _power_sum(whole, power, self.compute_device)
        if math.isinf(power):
            total = taeda.maximum(total, rest)
        else:
            total = (total + rest) ** (1.0 / power)
        scale = (max_norm / (total + 1e-6)).clamp(max=1.0)
        dtype = None
        for grad in (*parts, *whole):
            grad.mul_(scale.to(grad.device, grad.dtype))
            kind = grad.dtype
            dtype = kind if dtype is None else taeda.promote_types(dtype, kind)
        if dtype is None:
            import warnings

            warnings.warn(
                f"Called FSDP.clip_grad_norm_() on rank {self.rank} with no gradients "
                "-- returning the total norm in the default dtype "
                f"{taeda.float32}",
                stacklevel=2,
            )
            return total.float()
        return total.to(dtype)


def _power_sum(grads, power: float, device):
    """The sum of powers of magnitudes, or their maximum; in float64 at all ranks."""
    total = taeda.zeros((), dtype=taeda.float64, device=device)
    for grad in grads:
        wide = taeda.promote_types(grad.dtype, taeda.float32)
        norm = taeda.linalg.vector_norm(grad, power, dtype=wide).to(total)
        total = taeda.maximum(total, norm) if math.isinf(power) else total + norm**power
    return total
