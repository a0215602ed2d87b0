"""Grouping of tensor lists, as optimizers written for PyTorch do it."""

from __future__ import annotations

from taeda.optim._foreach import group_tensors

__all__: list[str] = []
_group_tensors_by_device_and_dtype = group_tensors


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]


def _has_foreach_support(tensors: list, device) -> bool:
    return device.type in _get_foreach_kernels_supported_devices()


def _device_has_foreach_support(device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")
