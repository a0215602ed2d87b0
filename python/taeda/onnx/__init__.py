"""Export to ONNX: not in this build, and it says so."""

from __future__ import annotations

from enum import IntEnum

from taeda._lazy import attributes

__all__ = [
    "OperatorExportTypes",
    "TrainingMode",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
__getattr__ = attributes(__name__)

# (operator, opset) -> function; each entry is written by one dict operation.
_symbolic_functions: dict[tuple[str, int], object] = {}


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


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn, opset_version: int
) -> None:
    """Keeps how an operator is written in a version of ONNX, for an exporter to come.

    Args:
        symbolic_name: "namespace::operator".
        symbolic_fn: makes the nodes of a call.
        opset_version: the version from which it holds.

    Raises:
        ValueError: the name has no namespace.
    """
    if symbolic_name.count("::") != 1:
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must "
            "match the format domain::name"
        )
    _symbolic_functions[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forgets what was registered for an operator and a version."""
    _symbolic_functions.pop((symbolic_name, opset_version), None)
