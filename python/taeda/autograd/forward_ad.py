"""Forward mode: dual numbers. The names exist; the derivatives are still to come."""

from __future__ import annotations

from collections import namedtuple

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])

_level = -1


def enter_dual_level() -> int:
    """Begin a level of dual numbers."""
    global _level
    if _level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _level += 1
    return _level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the current level."""
    global _level
    if level is not None and level != _level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    _level -= 1


def make_dual(tensor, tangent, *, level: int | None = None):
    """A tensor with a direction to differentiate in."""
    if _level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first."
        )
    raise NotImplementedError("make_dual: forward mode is not implemented yet")


def unpack_dual(tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor and its derivative, None where there is none."""
    if _level < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(tensor, None)


class dual_level:
    """A level of dual numbers for the length of a block."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        exit_dual_level()
