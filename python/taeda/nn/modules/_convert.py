"""Changing the dtype, device or memory of all tensors of a module."""

from __future__ import annotations

import taeda

from ..parameter import Parameter
from ._state import _future
from ._tree import conversion

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from typing import Self


def _floats(name):
    """A conversion method that leaves integer tensors as they are."""

    def convert(t):
        return getattr(t, name)() if t.is_floating_point() else t

    return convert


def _data_fits(old, new) -> bool:
    """Whether `old.data = new` is possible (same kind of tensor)."""
    if _future("get_overwrite_module_params_on_conversion"):
        return False
    if type(new) not in (taeda.Tensor, Parameter) and taeda._C._has_torch_dispatch(
        type(new)
    ):
        return False  # what such a class holds is no data of the native tensor
    # A parameter that gets its first memory is a new one, as in PyTorch.
    return (old.layout, old.is_meta) == (new.layout, new.is_meta)


def _swap(where, old, new) -> None:
    try:
        taeda.utils.swap_tensors(old, new)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {where}") from error


class Convert:
    """The part of `Module` that converts tensors."""

    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)
        swap = _future("get_swap_module_params_on_conversion")
        for name, value in self._parameters.items():
            if value is not None:
                self._apply_to(fn, name, value, swap)
        for name, value in self._buffers.items():
            if value is not None:
                self._buffers[name] = fn(value)
        return self

    def _apply_to(self, fn, name, value, swap) -> None:
        with taeda.no_grad():
            new = fn(value)
        grad, where = value.grad, f"{self._get_name()}.{name}"
        if swap:
            value.grad = None
            _swap(where, value, Parameter(new, value.requires_grad))
        elif _data_fits(value, new):
            value.data = new
        else:
            value = self._parameters[name] = Parameter(new, value.requires_grad)
        if grad is None:
            return
        with taeda.no_grad():
            new = fn(grad)
        if swap:
            _swap(where + ".grad", grad, new.requires_grad_(grad.requires_grad))
            value.grad = grad
        elif _data_fits(grad, new) and value.grad is not None:
            value.grad.data = new
        else:
            value.grad = new.requires_grad_(grad.requires_grad)

    def to(self, *args, **kwargs) -> Self:
        """Move or cast all parameters and buffers, in place.

        Forms: `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)`,
        `to(tensor, non_blocking)`, `to(memory_format=...)`; a dtype goes to
        floating and complex tensors only, a memory format to those of 4 and 5
        dimensions.

        Raises:
            TypeError: an integer dtype, or arguments that fit no form.
            NotImplementedError: values on the meta device (use `to_empty`).

        Example:
            >>> taeda.nn.Linear(2, 2).to(taeda.float64).weight.dtype is taeda.float64
            True
        """
        device, dtype, non_blocking, layout = conversion(args, kwargs)
        if dtype is not None:
            _check_module_dtype(dtype)

        def convert(t):
            kind = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if layout is not None and t.dim() in (4, 5):
                    return t.to(device, kind, non_blocking, memory_format=layout)
                return t.to(device, kind, non_blocking)
            except NotImplementedError as error:
                if not str(error).startswith("Cannot copy out of meta tensor"):
                    raise
                raise NotImplementedError(
                    f"{error} Please use nn.Module.to_empty() instead of "
                    "nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse: bool = True) -> Self:
        """Move to `device` without the values: memory is left uninitialized.

        Args:
            device: where to.
            recurse: the modules below as well.
        """
        return self._apply(lambda t: taeda.empty_like(t, device=device), recurse)

    def type(self, dst_type) -> Self:
        """Cast all parameters and buffers, integer ones as well, to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating tensors to float32."""
        return self._apply(_floats("float"))

    def double(self) -> Self:
        """Cast floating tensors to float64."""
        return self._apply(_floats("double"))

    def half(self) -> Self:
        """Cast floating tensors to float16."""
        return self._apply(_floats("half"))

    def bfloat16(self) -> Self:
        """Cast floating tensors to bfloat16."""
        return self._apply(_floats("bfloat16"))

    def cpu(self) -> Self:
        """Move all tensors to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None) -> Self:
        """Move all tensors to a CUDA device (default: the current one)."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device=None) -> Self:
        """Move all tensors to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def xpu(self, device=None) -> Self:
        """Move all tensors to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None) -> Self:
        """Move all tensors to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))


def _check_module_dtype(dtype) -> None:
    if dtype.is_complex:
        import warnings

        warnings.warn(
            "Complex modules are a new feature: some modules may not work as expected "
            "with complex parameters or buffers",
            stacklevel=3,
        )
    elif not dtype.is_floating_point:
        raise TypeError(
            "nn.Module.to only accepts floating point or complex dtypes, but got "
            f"desired dtype={dtype}"
        )
