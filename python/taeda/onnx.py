"""Export to ONNX: not in this build, and it says so."""

from __future__ import annotations

from enum import IntEnum

from taeda._lazy import attributes

__all__ = ["OperatorExportTypes", "TrainingMode", "is_in_onnx_export"]
__getattr__ = attributes(__name__)


class TrainingMode(IntEnum):
    """In which mode a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """Which operators an exported graph may hold."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """Whether an export is under way: never."""
    return False
