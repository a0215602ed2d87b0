"""Scaling of the loss, so that small gradients survive in float16."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum

import taeda

__all__ = ["GradScaler", "OptState"]


_SCHEDULE = ("growth_factor", "backoff_factor", "growth_interval")


class OptState(Enum):
    """How far an optimizer is in the current iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _needs(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)


def _numbers_of(param):
    """A gradient's numbers, of a sparse one those that it holds."""
    if not param.grad.is_sparse:
        return param.grad
    if param.grad.dtype == taeda.float16:
        # What stands twice at a place may overflow in sum.
        param.grad = param.grad.coalesce()
    return param.grad._values()


class GradScaler:
    """Scales losses up and gradients back down, skipping steps that overflowed.

    Args:
        device: kind of device of the gradients.
        init_scale: the first factor.
        growth_factor, backoff_factor: what the factor is multiplied by after
            `growth_interval` good steps, and after a bad one.
        growth_interval: number of good steps in a row.
        enabled: False makes every method pass its argument through.

    Raises:
        AssertionError: a growth factor that is at most 1, a backoff factor that is not
            below 1; methods called in another order than scale, (unscale_,) step,
            update.

    Example:
        >>> scaler = taeda.amp.GradScaler("cpu", init_scale=4.0)
        >>> scaler.scale(taeda.tensor(2.0))
        tensor(8.)
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
        if self._enabled:
            _needs(growth_factor > 1.0, "The growth factor must be > 1.0.")
            _needs(backoff_factor < 1.0, "The backoff factor must be < 1.0.")
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        # The tensors are made when it is known on which device.
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale = self._growth_tracker = None
        self._forget()

    def _forget(self) -> None:
        self._per_optimizer_states: dict[int, dict] = defaultdict(
            _refresh_per_optimizer_state
        )

    def _lazy_init_scale_growth_tracker(self, dev) -> None:
        _needs(self._growth_tracker is None, "_growth_tracker is there before _scale")
        for name, dtype in (("scale", taeda.float32), ("growth_tracker", taeda.int32)):
            first = getattr(self, f"_init_{name}")
            setattr(self, f"_{name}", taeda.tensor(first, dtype=dtype, device=dev))

    def _check_scale_growth_tracker(self, funcname: str):
        """The factor and the count of good steps; there are none before `scale`."""
        for name in ("_scale", "_growth_tracker"):
            _needs(
                getattr(self, name) is not None,
                f"Attempted {funcname} but {name} is None: call scaler.scale(loss) "
                "earlier in the iteration.",
            )
        return self._scale, self._growth_tracker

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def scale(self, outputs):
        """The loss, or an iterable of losses, times the factor.

        Raises:
            ValueError: something else.
        """
        if not self._enabled:
            return outputs
        device = getattr(outputs, "device", None)
        if self._scale is None and device is not None:
            self._lazy_init_scale_growth_tracker(device)
        if isinstance(outputs, taeda.Tensor):
            return outputs * self._scale.to(device, non_blocking=True)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def _found_inf_per_device(self, optimizer) -> dict:
        state = self._per_optimizer_states[id(optimizer)]
        return state["found_inf_per_device"]

    # Unscaling -------------------------------------------------------------------

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor.

        Raises:
            RuntimeError: called twice before `update`, or after `step`.
            ValueError: a gradient is of float16.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last "
                "update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # The quotient of a float32 number is rounded once.
        inverse = scale.double().reciprocal().float()
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, inverse, taeda.zeros_like(inverse), False
        )
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16: bool):
        """Multiplies all gradients; by device, 1 where one was not finite."""
        grads: dict = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.dtype == taeda.float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads[param.grad.device].append(_numbers_of(param))
        found = {device: found_inf.to(device, copy=True) for device in grads}
        with taeda.no_grad():
            for device, of_device in grads.items():
                taeda._amp_foreach_non_finite_check_and_unscale_(
                    of_device, found[device], inv_scale.to(device)
                )
        return found

    def _check_inf_per_device(self, optimizer):
        """What `unscale_` finds, with the gradients left as they are."""
        like, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, zero = like.new_ones(()), like.new_zeros(())
        found = self._found_inf_per_device(optimizer)
        found |= self._unscale_grads_(optimizer, one, zero, allow_fp16=True)
        return found

    # Steps -----------------------------------------------------------------------

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(*args)`, unless a gradient is infinite or NaN.

        Raises:
            RuntimeError: called twice before `update`, or with a closure.
        """
        if self._enabled and "closure" in kwargs:
            raise RuntimeError(
                "GradScaler.step: Closure use is not currently supported while the "
                "scaler is enabled"
            )
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update()."
            )
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._fused_step(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            _needs(
                bool(state["found_inf_per_device"]),
                "No inf checks were recorded for this optimizer.",
            )
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer, optimizer_state, *args, **kwargs):
        """The step, if every gradient is finite."""
        if any(v.item() for v in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _fused_step(self, optimizer, state, args, kwargs):
        """The step of an optimizer that unscales and skips in its own kernel."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to "
                "the passed optimizer. In the near future GradScaler registers "
                "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer "
                "and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        unscaled = state["stage"] is OptState.UNSCALED
        if not unscaled:
            self._check_inf_per_device(optimizer)
        optimizer.grad_scale = None if unscaled else self._get_scale_async()
        optimizer.found_inf = self._sum(state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _sum(self, found):
        """Of flags on any devices, on that of the factor; None without any."""
        flags = [flag.to(self._scale.device) for flag in found]
        return sum(flags[1:], flags[0]) if flags else None

    def update(self, new_scale=None) -> None:
        """Choose the next factor; call it once at the end of each iteration.

        Args:
            new_scale: the factor to use instead, a float or a tensor of one element.
        """
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, taeda.Tensor):
            _needs(
                new_scale.numel() == 1 and not new_scale.requires_grad,
                "new_scale should be a float or a 1-element tensor with "
                f"requires_grad=False, got {new_scale!r}",
            )
            scale.copy_(new_scale)
        elif new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = self._sum(
                flag
                for state in self._per_optimizer_states.values()
                for flag in state["found_inf_per_device"].values()
            )
            _needs(found is not None, "No inf checks were recorded prior to update.")
            taeda._amp_update_scale_(
                scale,
                tracker,
                found,
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._forget()

    # State -----------------------------------------------------------------------

    def _get_scale_async(self):
        """The factor as a tensor; None before the first `scale`."""
        return self._scale

    def get_scale(self) -> float:
        """The factor; 1 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        if self._growth_tracker is None:
            return self._init_growth_tracker
        return self._growth_tracker.item()

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

    def state_dict(self) -> dict:
        """The factor and its schedule; empty when disabled."""
        if not self._enabled:
            return {}
        state: dict = {"scale": self.get_scale()}
        state |= {name: getattr(self, f"_{name}") for name in _SCHEDULE}
        return state | {"_growth_tracker": self._get_growth_tracker()}

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a state of `state_dict`.

        Raises:
            RuntimeError: the state is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler."
            )
        for name in _SCHEDULE:
            setattr(self, f"_{name}", state_dict[name])
        self._init_scale = state_dict["scale"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        if self._enabled:
            _needs(
                not self._per_optimizer_states,
                "GradScalers may only be pickled at the beginning of an iteration, or "
                "after update().",
            )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state
