"""Scaling of the loss, so that small gradients survive in float16."""

from __future__ import annotations

import taeda

__all__ = ["GradScaler"]

_READY, _UNSCALED, _STEPPED = range(3)


class GradScaler:
    """Scales losses up and gradients back down, skipping steps that overflowed.

    Args:
        device: kind of device of the gradients.
        init_scale: the first factor.
        growth_factor, backoff_factor: what the factor is multiplied by after
            `growth_interval` good steps, and after a bad one.
        growth_interval: number of good steps in a row.
        enabled: False makes every method pass its argument through.

    Example:
        >>> scaler = taeda.amp.GradScaler("cpu", enabled=False)
        >>> scaler.scale(taeda.tensor(2.0))
        tensor(2.)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not taeda.cuda.is_available():
            import warnings

            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                "Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if self._enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._stages: dict[int, int] = {}
        self._found_inf: dict[int, bool | None] = {}

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor; 1 when disabled."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs):
        """The loss, or an iterable of losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, taeda.Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(item) for item in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor.

        Raises:
            RuntimeError: called twice before `update`, or after `step`.
        """
        if not self._enabled:
            return
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last "
                "update()."
            )
        if stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        found = None
        with taeda.no_grad():
            for grad in _gradients(optimizer):
                found = bool(found)
                if grad.dtype == taeda.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                found |= not bool(grad.isfinite().all())
                grad.mul_(1.0 / self._scale)
        self._found_inf[id(optimizer)] = found
        self._stages[id(optimizer)] = _UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(*args)`, unless a gradient is infinite or NaN."""
        if self._enabled and self._overflowed(optimizer, "closure" in kwargs):
            return None
        return optimizer.step(*args, **kwargs)

    def _overflowed(self, optimizer, closure: bool) -> bool:
        """Is the step to be left out? Unscales what the caller has not."""
        if closure:
            raise RuntimeError(
                "GradScaler.step: a closure is not supported while it is enabled"
            )
        key = id(optimizer)
        stage = self._stages.get(key, _READY)
        if stage == _STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update()."
            )
        if stage == _READY:
            self.unscale_(optimizer)
        if self._found_inf[key] is None:
            raise AssertionError(
                "GradScaler.step: no parameter of the optimizer has a gradient"
            )
        self._stages[key] = _STEPPED
        return self._found_inf[key]

    def update(self, new_scale=None) -> None:
        """Choose the next factor; call it once at the end of each iteration.

        Args:
            new_scale: the factor to use instead.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif all(found is None for found in self._found_inf.values()):
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found_inf.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._stages.clear()
        self._found_inf.clear()

    def state_dict(self) -> dict:
        """The factor and its schedule; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a state of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler."
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def get_growth_factor(self) -> float:
        """What the factor grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the factor grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the factor shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the factor shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps before the factor grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of good steps before the factor grows."""
        self._growth_interval = new_interval


def _gradients(optimizer):
    for group in optimizer.param_groups:
        for param in group["params"]:
            if param.grad is not None:
                yield param.grad
