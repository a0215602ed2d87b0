"""autocast: a scope in which operators run in lower precision."""

from __future__ import annotations

import functools
import warnings

from taeda import _C

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]

_SMALL = (_C.bfloat16, _C.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast can be set for a kind of device.

    Raises:
        RuntimeError: there is no such kind of device.
    """
    return _C._is_autocast_available(device_type)


def _dtypes_of_program(kind: str) -> tuple:
    """What the module of a program's device says that autocast may compute in."""
    import taeda

    module = getattr(taeda, kind, None)
    if not hasattr(module, "get_amp_supported_dtype"):
        raise AssertionError(
            f"Tried to use AMP with the `{kind}` backend, of which nothing says in "
            "which dtypes it computes: the module that it registers by "
            "`taeda._register_device_module` needs a function "
            "`get_amp_supported_dtype() -> list[taeda.dtype]`"
        )
    return tuple(module.get_amp_supported_dtype())


def _checked(device_type: str) -> str:
    if not isinstance(device_type, str):
        raise ValueError(
            "autocast: Expected `device_type` of type `str`, got: "
            f"`{type(device_type)}` ({device_type!r})"
        )
    return device_type


def _is_there(device_type: str) -> bool:
    """Whether calls on the device can be cast at all."""
    kind = device_type.partition(":")[0]
    if kind == "cuda":
        import taeda

        return taeda.cuda.is_available()
    return kind == "cpu"


def autocast_decorator(autocast_instance: autocast, func):
    """`func` as a function that runs within the scope.

    Calls have a scope each, so that they may nest and run in several threads.
    """

    @functools.wraps(func)
    def run(*args, **kwargs):
        with autocast_instance._again():
            return func(*args, **kwargs)

    run.__script_unsupported = "@autocast() decorator is not supported in script mode"
    return run


class autocast:
    """A scope, or decorator, in which operators compute in the dtype that suits them.

    What the record of an operator says of autocast is done to the arguments of its
    calls (`taeda.ops.aten.mm.default.record.autocast`): products, convolutions and
    attention take the smaller dtype (`lower`), losses and factorizations float32
    (`float32`), joins the wider of their arguments' (`promote`). float64, integers,
    in-place forms and calls with `out=` are left alone. `backward()` belongs outside:
    gradients have the dtypes of the forward pass there.

    Args:
        device_type: "cpu", "cuda", ...
        dtype: bfloat16 or float16; what `get_autocast_dtype` says if None.
        enabled: False switches autocast off inside.
        cache_enabled: whether casts of parameters are kept until the outermost scope
            ends; as outside if None.

    Raises:
        ValueError: device_type is not a string.
        RuntimeError: autocast knows no such device, or the GPU has no bfloat16.

    Example:
        >>> x = taeda.ones(2, 2)
        >>> with taeda.autocast("cpu"):
        ...     y = x @ x
        >>> y.dtype
        taeda.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype=None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device = _checked(device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.fast_dtype = _C.get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = bool(enabled) and self._works()
        self._cache_enabled = (
            _C.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._before: list[tuple] = []

    def _works(self) -> bool:
        """Whether it can be switched on; warns where it cannot."""
        name, small = self.device.upper(), _SMALL
        kind = self.device.partition(":")[0]
        is_program = kind == _C._get_privateuse1_backend_name()
        if is_program:
            small = _dtypes_of_program(kind)
        if not (is_program or _is_there(self.device)):
            problem = f"{name.partition(':')[0]} is not available. Disabling autocast."
        elif self.device == "cuda":
            return self._works_on_gpu()
        elif self.fast_dtype not in small:
            problem = (
                f"In {name} autocast, but the target dtype is not supported. "
                f"Disabling autocast.\n{self.fast_dtype} is none of "
                f"{', '.join(map(str, small))}."
            )
        else:
            return True
        warnings.warn(problem, stacklevel=3)
        return False

    def _works_on_gpu(self) -> bool:
        """True: a GPU takes any dtype, but for bfloat16 on those that are too old."""
        import taeda

        if self.fast_dtype == _C.bfloat16 and not taeda.cuda.is_bf16_supported():
            raise RuntimeError(
                "Current CUDA Device does not support bfloat16. Please switch dtype "
                "to float16."
            )
        return True

    def _again(self) -> autocast:
        """The same scope, not yet entered."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _before=[])
        return twin

    def __enter__(self) -> autocast:
        device = self.device
        self._before.append(
            (
                _C.is_autocast_enabled(device),
                _C.get_autocast_dtype(device),
                _C.is_autocast_cache_enabled(),
            )
        )
        _switch(device, self._enabled, self.fast_dtype, self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _switch(self.device, *self._before.pop())
        return False

    def __call__(self, func):
        return autocast_decorator(self, func)


def _switch(device: str, enabled: bool, dtype, cache_enabled: bool) -> None:
    _C.set_autocast_dtype(device, dtype)
    _C.set_autocast_enabled(device, enabled)
    _C.set_autocast_cache_enabled(cache_enabled)


def _enter_autocast(*vals):
    """Enters a scope that `_exit_autocast` leaves."""
    return autocast(*vals).__enter__()


def _exit_autocast(mode) -> None:
    """Leaves a scope of `_enter_autocast`."""
    mode.__exit__(None, None, None)


# Custom functions ---------------------------------------------------------------


def _cast(value, device_type: str, dtype):
    """`value` with its floating-point tensors cast, in containers too."""
    import taeda

    if isinstance(value, taeda.Tensor):
        cast = (
            value.is_floating_point()
            and value.dtype != taeda.float64
            and value.device.type == device_type
        )
        return value.to(dtype) if cast else value
    inside = functools.partial(_cast, device_type=device_type, dtype=dtype)
    if isinstance(value, dict):
        return dict(zip(map(inside, value), map(inside, value.values()), strict=True))
    if isinstance(value, (list, tuple)):
        named = hasattr(value, "_fields")  # takes its parts one by one
        parts = map(inside, value)
        return type(value)(*parts) if named else type(value)(parts)
    return value


def custom_fwd(fwd=None, *, device_type: str, cast_inputs=None):
    """For `forward` of a custom Function that may run under autocast.

    Args:
        fwd: the function; None for use as a decorator with arguments.
        device_type: the device whose autocast counts.
        cast_inputs: a dtype. Under autocast, floating-point tensors on the device are
            cast to it, and autocast is off inside. If None, forward runs as it is
            called, and so does `backward`.

    Raises:
        ValueError: device_type is not a string.

    Example:
        >>> class Square(taeda.autograd.Function):
        ...     @staticmethod
        ...     @taeda.amp.custom_fwd(device_type="cpu", cast_inputs=taeda.float32)
        ...     def forward(ctx, x):
        ...         return x @ x
    """
    _checked(device_type)
    if fwd is None:
        return functools.partial(
            custom_fwd, device_type=device_type, cast_inputs=cast_inputs
        )

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        context = args[0]
        enabled = _C.is_autocast_enabled(device_type)
        context._dtype = _C.get_autocast_dtype(device_type)
        context._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **kwargs)
        args, kwargs = _cast((args, kwargs), device_type, cast_inputs)
        with autocast(device_type, enabled=False):
            return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd=None, *, device_type: str):
    """For `backward` of a custom Function: runs it under the autocast of its forward.

    Args:
        bwd: the function; None for use as a decorator with arguments.
        device_type: as for `custom_fwd`, which must decorate `forward`.

    Raises:
        ValueError: device_type is not a string.

    Example:
        >>> decorate = taeda.amp.custom_bwd(device_type="cpu")
    """
    _checked(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        context = args[0]
        used = context._fwd_used_autocast
        with autocast(device_type, context._dtype, enabled=used):
            return bwd(*args, **kwargs)

    return backward
