"""What code inside of `__torch_dispatch__` needs of modes."""

from __future__ import annotations

from taeda import _C

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch():
    """A context in which operators pass by modes and classes of Python.

    Example:
        >>> with no_dispatch():
        ...     taeda.ones(2)
        tensor([1., 1.])
    """
    return _C._DisableTorchDispatch()


def all_same_mode(modes) -> bool:
    """Whether a sequence of modes holds one mode only."""
    return all(mode is modes[0] for mode in modes)
