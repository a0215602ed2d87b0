"""What distributed tensors send and where their parts lie."""

from __future__ import annotations

__all__ = []

# The modes that count, innermost last; the thread that entered one leaves it.
_counting: list = []


def _observed(name: str, mesh, tensor) -> None:
    """Tells the modes of a collective."""
    for mode in _counting:
        mode._count(name, mesh, tensor)
