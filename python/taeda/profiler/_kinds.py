"""Enumerations of the profiler, with PyTorch's numbers."""

from __future__ import annotations

from enum import Enum

DeviceType = Enum(
    "DeviceType",
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta "
    "HPU VE Lazy IPU MTIA PrivateUse1",
    module=__name__,
    start=0,
)
DeviceType.__doc__ = "Kinds of devices on which something may run."


class ProfilerActivity(Enum):
    """What is recorded."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
