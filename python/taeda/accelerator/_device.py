"""The functions of the accelerator in use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["module"]


def module() -> Any:
    """`taeda.cuda`, or what a program's own device has in its place.

    Raises:
        RuntimeError: there is none.
    """
    from taeda import _program_device, cuda

    if _program_device.is_there():
        return _program_device
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return cuda
