"""The library of the accelerator in use."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["cuda"]


def cuda() -> Any:
    """`taeda.cuda`, where it has a GPU.

    Raises:
        RuntimeError: there is none.
    """
    from taeda import cuda as found

    if not found.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return found
