"""Running combinations along a dim."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops._recorder import recorder
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
):
    """At each place the combination of all elements up to it.

    Args:
        combine_fn: takes two elements (trees like xs) and gives one; associative.
        xs: a tensor, or a tree of tensors.
        dim: the dim to go along.
        reverse: from the end.
        combine_mode: "pointwise" or "generic"; the same here.

    Returns:
        A tree like xs.
    """
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    count = leaves[0].size(dim)
    record = recorder()
    if record is not None and (isinstance(count, taeda.SymInt) or count > 1):
        found = _recorded(record, combine_fn, (leaves, spec), dim, reverse)
        if found is not NotImplemented:
            return found
    places = range(leaves[0].size(dim))
    rows, carry = [], None
    for i in reversed(places) if reverse else places:
        item = tree_unflatten([leaf.select(dim, i) for leaf in leaves], spec)
        carry = item if carry is None else combine_fn(carry, item)
        rows.append(tree_flatten(carry)[0])
    if reverse:
        rows.reverse()
    joined = [taeda.stack(column, dim) for column in zip(*rows, strict=True)]
    return tree_unflatten(joined or leaves, spec)


def _recorded(record, combine_fn, xs: tuple, dim: int, reverse: bool):
    """As `associative_scan`, for a recorder of scans along first dims only."""
    leaves, spec = xs
    rows = [x.movedim(dim, 0) if dim else x for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]
    found = record("associative_scan", combine_fn, rows, spec)
    if found is NotImplemented:
        return found
    if reverse:
        found = [x.flip(0) for x in found]
    return tree_unflatten([x.movedim(0, dim) if dim else x for x in found], spec)
