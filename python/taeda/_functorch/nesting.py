"""Levels by their depth, as PyTorch's `torch._C._functorch` knows them.

Its functions count levels from 1, the outermost; here they take the level itself as
well, which stays valid once it has ended.
"""

from __future__ import annotations

from taeda._functorch.levels import (
    batch_level,
    below,
    dual_level,
    grad_level,
    innermost,
)

__all__ = [
    "_add_batch_dim",
    "_grad_decrement_nesting",
    "_grad_increment_nesting",
    "_jvp_decrement_nesting",
    "_jvp_increment_nesting",
    "_remove_batch_dim",
    "_vmap_decrement_nesting",
    "_vmap_increment_nesting",
    "get_dynamic_layer_stack_depth",
    "level_at",
    "pop_dynamic_layer_stack_and_undo_to_depth",
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


def _opened(level) -> int:
    level.__enter__()
    return level.depth


def _ended(kind: str) -> int:
    level = innermost()
    if level is None or level.kind != kind:
        found = "none" if level is None else level.kind
        raise RuntimeError(f"no level of {kind} is innermost, but {found}")
    depth = level.depth
    level.__exit__(None, None, None)
    return depth


def _vmap_increment_nesting(size: int, randomness: str) -> int:
    """Opens a level of vmap; returns its depth."""
    return _opened(batch_level(size, randomness))


def _vmap_decrement_nesting() -> int:
    """Ends the innermost level, which is one of vmap; returns the depth it had.

    Raises:
        RuntimeError: it is none of vmap.
    """
    return _ended("vmap")


def _grad_increment_nesting() -> int:
    """Opens a level of grad; returns its depth."""
    return _opened(grad_level())


def _grad_decrement_nesting() -> int:
    """Ends it, as `_vmap_decrement_nesting`."""
    return _ended("grad")


def _jvp_increment_nesting() -> int:
    """Opens a level of jvp; returns its depth."""
    return _opened(dual_level())


def _jvp_decrement_nesting() -> int:
    """Ends it, as `_vmap_decrement_nesting`."""
    return _ended("dual")


def get_dynamic_layer_stack_depth() -> int:
    """How many levels of this thread are open."""
    level = innermost()
    return 0 if level is None else level.depth


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int) -> None:
    """Ends levels, the innermost first, until `depth` are open."""
    while get_dynamic_layer_stack_depth() > depth:
        innermost().__exit__(None, None, None)
