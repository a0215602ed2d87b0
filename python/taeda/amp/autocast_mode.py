"""autocast: a scope in which operators run in lower precision."""

from __future__ import annotations

from taeda.amp import state

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast:
    """A scope, or decorator, in which chosen operators compute in a smaller dtype.

    Args:
        device_type: "cpu", "cuda", ...
        dtype: bfloat16 or float16; the device's usual one if None.
        enabled: False switches autocast off inside.
        cache_enabled: whether casts of parameters are kept within the scope.

    Raises:
        NotImplementedError: entered while enabled; casting does not exist yet.

    Example:
        >>> with taeda.autocast("cpu", enabled=False):
        ...     y = taeda.ones(2) * 2
    """

    def __init__(
        self,
        device_type: str,
        dtype=None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: Expected `device_type` of type `str`, got: {device_type!r}"
            )
        if not state.is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = (
            state.get_autocast_dtype(device_type) if dtype is None else dtype
        )
        self._enabled = bool(enabled)
        self._cache_enabled = cache_enabled
        if self._enabled and device_type != "cpu":
            import warnings

            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type} is "
                "not available. Disabling",
                stacklevel=2,
            )
            self._enabled = False

    def __enter__(self) -> autocast:
        self._before = (
            state.is_autocast_enabled(self.device),
            state.get_autocast_dtype(self.device),
        )
        state.set_autocast_enabled(self.device, self._enabled)
        state.set_autocast_dtype(self.device, self.fast_dtype)
        state.autocast_increment_nesting()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        state.autocast_decrement_nesting()
        state.set_autocast_enabled(self.device, self._before[0])
        state.set_autocast_dtype(self.device, self._before[1])

    def __call__(self, func):
        from functools import wraps

        @wraps(func)
        def run(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return run


def custom_fwd(fwd=None, *, device_type: str = "cuda", cast_inputs=None):
    """For `forward` of a custom Function; without autocast it changes nothing."""
    if fwd is None:
        return lambda function: custom_fwd(
            function, device_type=device_type, cast_inputs=cast_inputs
        )
    return fwd


def custom_bwd(bwd=None, *, device_type: str = "cuda"):
    """For `backward` of a custom Function; without autocast it changes nothing."""
    return (lambda function: function) if bwd is None else bwd
