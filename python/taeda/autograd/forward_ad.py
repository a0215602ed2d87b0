"""Forward mode: tensors with tangents, within a level."""

from __future__ import annotations

import threading
from collections import namedtuple

from taeda import _C
from taeda._functorch.levels import dual_level as _new_level
from taeda.autograd.grad_mode import _Decorator

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "A tensor and its tangent, None where that is zero."


class _Current(threading.local):
    """The level that this thread is in; there is one at most."""

    level = None


_current = _Current()


def __getattr__(name: str) -> int:
    if name == "_current_level":
        return -1 if _current.level is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begins a level; the number 0, for there is one at a time.

    Raises:
        RuntimeError: inside of a level.
    """
    if _current.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current.level = _new_level(is_transform=False)
    _current.level.__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level; its tensors are plain tensors from here on.

    Raises:
        RuntimeError: outside of a level, or for another number.
    """
    if _current.level is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    _current.level.__exit__(None, None, None)
    _current.level = None


def _check_level(level: int | None, user: str) -> None:
    if level not in (None, 0):
        raise RuntimeError(f"Invalid level given to {user}: {level}; there is level 0")


def make_dual(tensor, tangent, *, level: int | None = None):
    """A view of a tensor that carries a tangent.

    Args:
        tensor: floating or complex, of any shape.
        tangent: floating or complex, of the same shape.
        level: 0, the only one.

    Raises:
        RuntimeError: outside of a level; another shape; a tensor that has a tangent.
        ValueError: a tensor or tangent that is neither floating nor complex.

    Example:
        >>> with taeda.autograd.forward_ad.dual_level():
        ...     x = make_dual(taeda.zeros(2), taeda.ones(2))
        ...     unpack_dual(x.sin()).tangent
        tensor([1., 1.])
    """
    if _current.level is None or level == -1:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first."
        )
    _check_level(level, "make_dual")
    for role, value in (("primal", tensor), ("tangent", tangent)):
        if value.is_floating_point() or value.is_complex():
            continue
        raise ValueError(
            f"Expected {role} to be floating point or complex, but got: {value.dtype}"
        )
    if _current.level.tangent(tangent) is not None:
        raise RuntimeError(
            "make_dual: the tangent has a forward gradient at the same level; unpack "
            "it first"
        )
    return _current.level.make_dual(tensor, tangent)


def unpack_dual(tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor without its tangent, and the tangent (None where it is zero).

    Args:
        tensor: any tensor; outside of a level it is returned as it is.
        level: 0, the only one.

    Raises:
        RuntimeError: another level.
    """
    if _current.level is None:
        return UnpackedDualTensor(tensor, None)
    _check_level(level, "unpack_dual")
    return UnpackedDualTensor(
        _current.level.primal(tensor), _current.level.tangent(tensor)
    )


def tangent_of(tensor):
    """The tangent at the current level of this thread; None without."""
    return None if _current.level is None else _current.level.tangent(tensor)


def _is_fwd_grad_enabled() -> bool:
    """Whether operators give their results tangents."""
    return _C._functorch.fwd_grad_enabled()


class _set_fwd_grad_enabled:
    """Switches the propagation of tangents, from the call on; restores it as context.

    Args:
        mode: whether operators give their results tangents.
    """

    def __init__(self, mode: bool) -> None:
        self._before = _C._functorch.fwd_grad_enabled()
        _C._functorch.set_fwd_grad_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        _C._functorch.set_fwd_grad_enabled(self._before)


class dual_level(_Decorator):
    """A level for the length of a block, or of each call of a decorated function.

    Example:
        >>> with dual_level():
        ...     x = make_dual(taeda.zeros(2), taeda.ones(2))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        exit_dual_level()
