"""The levels of function transforms, as contexts (csrc/functorch)."""

from __future__ import annotations

from taeda import _C

__all__ = ["batch_level", "describe", "dual_level", "grad_level"]


def grad_level():
    """A level of reverse mode; inside `with`, calls on its wrappers are recorded.

    Its `wrap(tensor)` gives a new leaf, `unwrap(tensor)` the value inside. A wrapper
    that outlives the level stands for the value inside.
    """
    return _C._functorch.GradLevel()


def batch_level(size: int, randomness: str):
    """A level of vmap; inside `with`, wrappers hide a dim of `size` elements.

    Its `wrap(tensor, dim)` hides a dim, `unwrap(tensor, dim)` shows it again (or
    expands what has none), `has_batch(tensor)` tells wrappers from other tensors.

    Raises:
        RuntimeError: randomness is not "error", "different" or "same".
    """
    return _C._functorch.BatchLevel(size, randomness)


def dual_level():
    """A level of forward mode: tensors made by its `make_dual` carry tangents.

    Its `make_dual(primal, tangent)` gives an alias with a tangent, `primal(tensor)` an
    alias without, `tangent(tensor)` the tangent, None where it is zero.
    """
    return _C._functorch.DualLevel()


def describe(tensor):
    """(kind of level, its depth, value inside) of a wrapper; None for other tensors.

    The depth counts from the outermost level; it is -1 where the level has ended.
    """
    return _C._functorch.describe(tensor)
