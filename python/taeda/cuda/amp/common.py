"""Whether scaling can have a meaning at all."""

from __future__ import annotations

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU."""
    import taeda

    return not taeda.cuda.is_available()
