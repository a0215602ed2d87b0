"""Trading computation for memory: a block's inner values are computed again.

Two ways. Without reentrance, the values that autograd would keep are replaced by
empty slots, filled by running the function again when backward asks for the first.
With reentrance, the block is one autograd node that runs a backward of its own.
(Chen et al., arXiv:1604.06174.)
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext

import taeda
from taeda._lazy import attributes
from taeda.autograd import Function
from taeda.utils._recompute import Block, CheckpointError, GraphExecGroup
from taeda.utils._recompute import is_tensor as _is_tensor

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "GraphExecGroup",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "set_device_states",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "DefaultDeviceType",
    "set_checkpoint_debug_enabled",
]

_SELECTIVE = (
    "CheckpointPolicy SAC_IGNORED_OPS SelectiveCheckpointContext"
    " create_selective_checkpoint_contexts"
)
__getattr__ = attributes(__name__, dict.fromkeys(_SELECTIVE.split(), "._selective"))
_settings: dict = {"debug": None, "early_stop": None}


@contextmanager
def _setting(name: str, value):
    before, _settings[name] = _settings[name], value
    try:
        yield
    finally:
        _settings[name] = before


def set_checkpoint_debug_enabled(enabled: bool | None):
    """Override `checkpoint`'s debug while a block runs; None leaves it alone."""
    return _setting("debug", enabled)


def set_checkpoint_early_stop(enable: bool):
    """Choose whether recomputation ends as soon as it has all it needs.

    Example:
        >>> with set_checkpoint_early_stop(False):
        ...     out = checkpoint(model, x, use_reentrant=False)
    """
    return _setting("early_stop", enable)


def detach_variable(inputs: tuple) -> tuple:
    """The same tensors without their history.

    Raises:
        RuntimeError: not a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if _is_tensor(x) else x
        for x in inputs
    )


def check_backward_validity(inputs) -> None:
    """Warn when no input requires grad."""
    if not any(_is_tensor(x) and x.requires_grad for x in inputs):
        import warnings

        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None",
            stacklevel=2,
        )


class DefaultDeviceType:
    """The device whose random state is kept when no argument names one."""

    _kind: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """An accelerator where there is one, else "cpu"."""
        if DefaultDeviceType._kind is None:
            found = taeda.accelerator.current_accelerator()
            return "cpu" if found is None else found.type
        return DefaultDeviceType._kind


def _tensors_in(value):
    if _is_tensor(value):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _tensors_in(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _tensors_in(entry)


def get_device_states(*args) -> tuple[list, list]:
    """(device numbers, random states) of the accelerators the arguments lie on."""
    devices = {
        t.device for t in _tensors_in(args) if t.device.type not in ("cpu", "meta")
    }
    devices = sorted(devices, key=str)
    states = [getattr(taeda, d.type).get_rng_state(d) for d in devices]
    return [d.index for d in devices], states


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Set what `get_device_states` returned."""
    kind = device_type or DefaultDeviceType.get_device_type()
    if kind == "meta":
        return
    for index, state in zip(devices, states, strict=False):
        getattr(taeda, kind).set_rng_state(state, taeda.device(kind, index))


class _Surroundings:
    """Random and autocast state at the forward call, to run in again."""

    def __init__(self, preserve_rng_state: bool, args) -> None:
        self.preserve = preserve_rng_state
        kinds = {t.device.type for t in _tensors_in(args)} - {"cpu", "meta"}
        self.kind = "cuda" if "cuda" in kinds else next(iter(kinds), None)
        if preserve_rng_state:
            self.cpu = taeda.get_rng_state()
            self.devices = get_device_states(*args) if self.kind else ([], [])
        self.autocast = [_autocast_options(k) for k in ("cpu", self.kind) if k]

    @contextmanager
    def restored(self):
        """Run a block as the forward was run; the random state is put back."""
        with ExitStack() as stack:
            for options in self.autocast:
                if options is not None:
                    stack.enter_context(taeda.amp.autocast(**options))
            if self.preserve:
                stack.callback(taeda.set_rng_state, taeda.get_rng_state())
                taeda.set_rng_state(self.cpu)
                if self.kind:
                    self._restore_devices(stack)
            yield

    def _restore_devices(self, stack) -> None:
        module, (indices, states) = getattr(taeda, self.kind), self.devices
        for index, state in zip(indices, states, strict=True):
            device = taeda.device(self.kind, index)
            stack.callback(module.set_rng_state, module.get_rng_state(device), device)
            module.set_rng_state(state, device)


def _autocast_options(kind: str) -> dict | None:
    """What autocast was asked for; None while it is off."""
    enabled = getattr(taeda, "is_autocast_enabled", None)
    if enabled is None or not enabled(kind):
        return None
    return {
        "device_type": kind,
        "enabled": True,
        "dtype": taeda.get_autocast_dtype(kind),
        "cache_enabled": taeda.is_autocast_cache_enabled(),
    }


class CheckpointFunction(Function):
    """The block as one node; its backward runs the block and a backward in it."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        """Run the block without recording it."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.around = _Surroundings(preserve_rng_state, args)
        ctx.places = [i for i, a in enumerate(args) if _is_tensor(a)]
        ctx.others = [None if _is_tensor(a) else a for a in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with taeda.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        """Run the block again, recorded, and backward through it."""
        if not taeda._C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with "
                ".grad() or passing an `inputs` parameter to .backward(): the block "
                "adds to all its leaves. Use use_reentrant=False"
            )
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        inputs = detach_variable(tuple(inputs))
        with ctx.around.restored(), taeda.enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if _is_tensor(outputs) else outputs
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=False)
            if _is_tensor(out) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not "
                "necessary"
            )
        taeda.autograd.backward(*map(list, zip(*pairs, strict=True)))
        return (None, None, *(x.grad if _is_tensor(x) else None for x in inputs))


def noop_context_fn():
    """Two contexts that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function,
    *args,
    use_reentrant: bool | None = None,
    context_fn=noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs,
):
    """Call a function and keep only its inputs for backward.

    Args:
        function: called with `args` (and `kwargs`), once now and once in backward.
        use_reentrant (bool): False is recommended.
        context_fn: gives two contexts, for the first and the second call.
        determinism_check (str): "default" compares shapes, dtypes and devices of
            what both calls save; "none" does not.
        debug (bool): name the lines that saved what, when both calls differ.
        early_stop (bool): end the second call when all values are there.
        preserve_rng_state (bool): give the second call the same random numbers.

    Returns: what `function` returns.

    Raises:
        ValueError: options of the other way. CheckpointError: in backward, when the
            second call saves something else.

    Example:
        >>> y = checkpoint(model, x, use_reentrant=False)
    """
    use_reentrant = _chosen(use_reentrant, "checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        debug = debug if _settings["debug"] is None else _settings["debug"]
        stop = (
            early_stop if _settings["early_stop"] is None else _settings["early_stop"]
        )
        checks = {"default": True, "none": False}
        if determinism_check not in checks:
            raise ValueError(
                f"determinism_check should be one of {list(checks)}, but got "
                f"{determinism_check}"
            )
        if debug and context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        around = _Surroundings(preserve, args)
        first, second = context_fn()
        block = Block(function, kwargs, around, second)
        block.compare, block.debug = checks[determinism_check], debug
        block.early_stop = stop
        return block.run(args, first)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when "
            "use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def _chosen(use_reentrant: bool | None, name: str) -> bool:
    if use_reentrant is None:
        import warnings

        warnings.warn(
            f"utils.checkpoint.{name}: the use_reentrant parameter should be passed "
            "explicitly. False is recommended, True is what leaving it out means now",
            stacklevel=3,
        )
        return True
    return use_reentrant


def checkpoint_sequential(
    functions, segments: int, input, use_reentrant: bool | None = None, **kwargs
):
    """Checkpoint a chain of modules in segments; the last one is kept whole.

    Args:
        functions: a Sequential or a list. segments (int): how many.
        input: of the first. preserve_rng_state (bool): as for `checkpoint`.

    Raises:
        ValueError: unknown options.

    Example:
        >>> y = checkpoint_sequential(model, 2, x, use_reentrant=False)
    """
    use_reentrant = _chosen(use_reentrant, "checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)

    def part(start: int, stop: int):
        def forward(value):
            for function in functions[start:stop]:
                value = function(value)
            return value

        return forward

    size, start = len(functions) // segments, 0
    for _ in range(segments - 1 if size else 0):
        input = checkpoint(
            part(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        start += size
    return part(start, len(functions))(input)
