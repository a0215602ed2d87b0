"""Levels by their depth, as PyTorch's `torch._C._functorch` knows them.

Its functions count levels from 1, the outermost; here they take the level itself as
well, which stays valid once it has ended.
"""

from __future__ import annotations

from taeda._functorch.levels import batch_level, below, innermost

__all__ = [
    "_add_batch_dim",
    "_remove_batch_dim",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "level_at",
]


def level_at(depth):
    """The thread's level at a depth, or the level that is given in its stead.

    Raises:
        RuntimeError: no level is at that depth.
    """
    if not isinstance(depth, int):
        return depth
    level = innermost()
    if level is None or not 0 < depth <= level.depth:
        raise RuntimeError(f"no level of a transform at depth {depth}")
    while level.depth > depth:
        with below(level):
            level = innermost()
    return level


def _add_batch_dim(tensor, dim: int, level):
    """A tensor with a dim hidden by a level of vmap."""
    return level_at(level).wrap(tensor, dim)


def _remove_batch_dim(tensor, level, size: int, dim: int):
    """A tensor with the dim shown that a level hides; expanded if it hides none.

    Args:
        size: the level's elements, which it knows itself.
        dim: where the dim stands in the result.
    """
    return level_at(level).unwrap(tensor, dim)


def _vmap_increment_nesting(size: int, randomness: str) -> int:
    """Opens a level of vmap; returns its depth."""
    level = batch_level(size, randomness)
    level.__enter__()
    return level.depth


def _vmap_decrement_nesting() -> int:
    """Ends the innermost level, which is one of vmap; returns the depth it had.

    Raises:
        RuntimeError: it is none of vmap.
    """
    level = innermost()
    if level is None or level.kind != "vmap":
        found = "none" if level is None else level.kind
        raise RuntimeError(f"no level of vmap is innermost, but {found}")
    depth = level.depth
    level.__exit__(None, None, None)
    return depth
