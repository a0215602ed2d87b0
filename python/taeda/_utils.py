"""Helpers under the names that programs written for PyTorch import."""

from __future__ import annotations

import taeda

__all__: list[str] = []


def _element_size(dtype) -> int:
    """Bytes of one element."""
    return dtype.itemsize


def _is_privateuse1_backend_available() -> bool:
    """Whether a program has added a device of its own, and it is there."""
    module = getattr(taeda, taeda._C._get_privateuse1_backend_name(), None)
    return module is not None and bool(getattr(module, "is_available", bool)())


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device given as int, text or device; -1 for the CPU."""
    if isinstance(device, int):
        return device
    device = taeda.device(device) if isinstance(device, str) else device
    if isinstance(device, taeda.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1 if device.index is None else device.index
    if device is None and optional:
        return -1
    raise ValueError(f"Expected a device with a specified index, but got: {device}")


def _flatten_dense_tensors(tensors) -> taeda.Tensor:
    """Tensors of one dtype behind one another in one row."""
    return taeda.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors) -> tuple:
    """The parts of a row as `_flatten_dense_tensors` made it, as views."""
    outputs, offset = [], 0
    for t in tensors:
        outputs.append(flat.narrow(0, offset, t.numel()).view_as(t))
        offset += t.numel()
    return tuple(outputs)


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, *rest):
    """A tensor from what a checkpoint holds of it."""
    from taeda._io import rebuild

    return rebuild.tensor_v2(storage, offset, size, stride, requires_grad, hooks, *rest)


def _take_tensors(tensors, size_limit: int):
    """Lists of tensors of one type, each of at most so many bytes, or of one tensor.

    Args:
        tensors: any number; those of one type keep their order.
        size_limit: bytes.
    """
    waiting: dict = {}
    for t in tensors:
        size = t.numel() * t.element_size()
        group, total = waiting.get(t.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        waiting[t.type()] = ([*group, t], total + size)
    for group, _ in waiting.values():
        yield group


def _reorder_tensors_as(tensors, ordered_tensors) -> tuple:
    """Tensors in the order of types that others have, within a type in their own."""
    by_type: dict = {}
    for t in tensors:
        by_type.setdefault(t.type(), []).append(t)
    return tuple(by_type[t.type()].pop(0) for t in ordered_tensors)


def _import_dotted_name(name: str):
    """What a dotted name stands for, after importing the first part.

    Raises:
        ImportError, AttributeError: there is no such thing.
    """
    from functools import reduce
    from importlib import import_module

    first, *rest = name.split(".")
    return reduce(getattr, rest, import_module(first))


def _get_available_device_type() -> str | None:
    """The kind of accelerator that can be used; None in this build."""
    device = taeda.accelerator.current_accelerator()
    return None if device is None else device.type


def _get_all_device_indices() -> list[int] | None:
    """The numbers of the accelerators that can be used; None without any."""
    return list(range(taeda.accelerator.device_count())) or None


def _get_device_module(device_type: str):
    """The submodule of a kind of device.

    Raises:
        RuntimeError: there is none.
    """
    module = getattr(taeda, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered "
            f"as '{taeda.__name__}.{device_type}'."
        )
    return module


def is_compiling() -> bool:
    """Whether the code is being captured: see `taeda.compiler.is_compiling`."""
    return taeda.compiler.is_compiling()


class classproperty:
    """A decorator: a property of the class itself.

    Args:
        func: a function of the class.
    """

    def __init__(self, func) -> None:
        self.func = getattr(func, "__func__", func)

    def __get__(self, instance, owner=None):
        return self.func(type(instance) if owner is None else owner)


# Functions that checkpoints name, by their part in `taeda._io.rebuild`.
_REBUILDS = {
    "_rebuild_tensor": "tensor_v1",
    "_rebuild_tensor_v3": "tensor_v3",
    "_rebuild_parameter": "parameter",
    "_rebuild_parameter_with_state": "parameter_with_state",
    "_rebuild_meta_tensor_no_storage": "meta_tensor",
    "_rebuild_device_tensor_from_cpu_tensor": "device_tensor_from_cpu",
    "_rebuild_wrapper_subclass": "wrapper_subclass",
}


def __getattr__(name: str):
    if name in _REBUILDS:
        from taeda._io import rebuild

        return getattr(rebuild, _REBUILDS[name])
    if name == "ExceptionWrapper":
        from taeda.utils.data._utils.failure import ExceptionWrapper

        return ExceptionWrapper
    from taeda._lazy import missing

    raise missing(__name__, name)
