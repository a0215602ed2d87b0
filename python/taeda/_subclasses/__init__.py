"""Classes of tensors that are part of the library: fake tensors."""

from __future__ import annotations

from taeda._lazy import attributes

_NAMES = (
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
)

__getattr__ = attributes(
    __name__, dict.fromkeys(_NAMES, "fake_tensor"), submodules=("fake_tensor",)
)
