"""Data parallel training that computes in a smaller dtype than it keeps."""

from __future__ import annotations

__all__ = ["LowPrecision", "_MixedPrecision"]


class _MixedPrecision:
    """Dtypes of computation; parameters, gradients and states keep their own.

    Args:
        param_dtype: of parameters within forward and backward passes, and of inputs.
        reduce_dtype: in which gradients are averaged; `param_dtype` if None.
        buffer_dtype: of buffers.
    """

    def __init__(self, param_dtype=None, reduce_dtype=None, buffer_dtype=None) -> None:
        self.param_dtype, self.reduce_dtype = param_dtype, reduce_dtype
        self.buffer_dtype = buffer_dtype

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"_MixedPrecision({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _MixedPrecision) and vars(self) == vars(other)

    __hash__ = None


class LowPrecision:
    """Casts of a model's parameters, made by autograd in each forward pass.

    The gradient of a cast reaches the parameter in the parameter's dtype. What is
    computed again in the backward pass (`utils.checkpoint`) finds parameters that are
    not cast, and is refused by the operators that see two dtypes.

    Args:
        module: the model.
        choice: a `_MixedPrecision`.
        skipped: names of parameters and buffers that are left alone.
    """

    def __init__(self, module, choice: _MixedPrecision, skipped) -> None:
        self.dtype = choice.param_dtype
        self.places = []
        for path, part in module.named_modules():
            for name in (*part._parameters, *part._buffers):
                if (f"{path}.{name}" if path else name) in skipped:
                    continue
                if part._parameters.get(name) is not None:
                    self.places.append((part, name))
                buffer = part._buffers.get(name)
                if choice.buffer_dtype is not None and buffer is not None:
                    if buffer.is_floating_point():
                        part._buffers[name] = buffer.to(choice.buffer_dtype)

    def run(self, module, args, kwargs):
        """The model's outputs for inputs that are cast as well."""
        if self.dtype is None:
            return module(*args, **kwargs)
        from taeda.distributed.fsdp._unit import cast_floating

        args, kwargs = cast_floating((args, kwargs), self.dtype)
        kept = [(part, dict(part._parameters)) for part, _ in self.places]
        casts: dict = {}
        try:
            for part, name in self.places:
                parameter = part._parameters.pop(name)
                if id(parameter) not in casts:
                    floats = parameter.is_floating_point()
                    cast = parameter.to(self.dtype) if floats else parameter
                    casts[id(parameter)] = cast
                part.__dict__[name] = casts[id(parameter)]
            return module(*args, **kwargs)
        finally:
            for part, name in self.places:
                part.__dict__.pop(name, None)
            for part, parameters in kept:
                part._parameters.clear()
                part._parameters.update(parameters)
