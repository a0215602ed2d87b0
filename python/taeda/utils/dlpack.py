"""Exchanging tensors with other libraries without a copy (dmlc.github.io/dlpack)."""

from __future__ import annotations

from enum import IntEnum

import taeda

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """Kinds of devices, by the numbers of the DLPack specification."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None):
    """A tensor over another library's memory.

    Args:
        ext_tensor: has `__dlpack__`, or is a capsule.
        device: where to; copy (bool): always (True) or never (False).

    Example:
        >>> import numpy
        >>> from_dlpack(numpy.arange(3))
        tensor([0, 1, 2])
    """
    options = {"device": device, "copy": copy}
    options = {k: v for k, v in options.items() if v is not None}
    return taeda.from_dlpack(ext_tensor, **options)


def to_dlpack(data, dl_device=None, copy: bool | None = None):
    """A capsule over a tensor's memory; `from_dlpack(tensor)` needs none.

    Args:
        data (Tensor): what is exported.
        dl_device: where the consumer wants it; None for where it is.
        copy: whether the capsule holds a copy.
    """
    return data.__dlpack__(dl_device=dl_device, copy=copy)
