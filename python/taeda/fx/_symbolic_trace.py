"""The place where PyTorch has these names."""

from __future__ import annotations

from taeda.fx import Tracer, symbolic_trace, wrap

__all__ = ["Tracer", "symbolic_trace", "wrap"]
