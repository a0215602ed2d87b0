"""Quantization: names so that programs can be imported."""

from __future__ import annotations

from taeda._absent import absent_class, absent_function
from taeda.nn import Module

_CLASSES = """
FakeQuantize FakeQuantizeBase ObserverBase MinMaxObserver HistogramObserver QConfig
QuantStub DeQuantStub
""".split()
_FUNCTIONS = """
convert fuse_modules get_default_qconfig prepare prepare_qat quantize quantize_dynamic
""".split()
__all__ = [*_CLASSES, *_FUNCTIONS]
globals().update((n, absent_class(f"ao.quantization.{n}", Module)) for n in _CLASSES)
globals().update((n, absent_function(f"ao.quantization.{n}")) for n in _FUNCTIONS)
