"""Helpers under the names that programs written for PyTorch import."""

from __future__ import annotations

import taeda

__all__: list[str] = []


def _element_size(dtype) -> int:
    """Bytes of one element."""
    return dtype.itemsize


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
