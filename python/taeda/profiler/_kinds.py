"""Enumerations of the profiler, with PyTorch's numbers."""

from __future__ import annotations

from enum import Enum

from taeda._choice import Choice

_DEVICES = (
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta"
    " HPU VE Lazy IPU MTIA PrivateUse1"
)
_ACTIVITIES = "CPU XPU CUDA HPU MTIA PrivateUse1"


class DeviceType(Choice):
    """Kinds of devices."""

    __slots__ = ()
    _values = {name: i for i, name in enumerate(_DEVICES.split())}


class ProfilerActivity(Choice):
    """What is recorded."""

    __slots__ = ()
    _values = {name: i for i, name in enumerate(_ACTIVITIES.split())}


class ProfilerAction(Enum):
    """What the profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
