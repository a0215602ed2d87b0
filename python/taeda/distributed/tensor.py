"""Tensors split over processes: not in this build, and they say so."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function

_CLASSES = "DTensor DeviceMesh Partial Placement Replicate Shard".split()
_FUNCTIONS = "distribute_module distribute_tensor init_device_mesh".split()
__all__ = [*_CLASSES, *_FUNCTIONS]
globals().update((n, absent_class(f"distributed.tensor.{n}")) for n in _CLASSES)
globals().update((n, absent_function(f"distributed.tensor.{n}")) for n in _FUNCTIONS)
