"""A function of each row."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops._recorder import recorder
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f, xs, *args):
    """Stacks what f(x, *args) gives for each x along the first dim of xs.

    Args:
        f: takes an element and the arguments, gives a tree of tensors.
        xs: a tree of tensors of the same first size, at least 1.
        args: handed on as they are.

    Raises:
        RuntimeError: xs have something else among them, or first sizes differ.

    Example:
        >>> from taeda._higher_order_ops import map
        >>> map(lambda x, y: x * y, taeda.arange(3.0), taeda.tensor(2.0))
        tensor([0., 2., 4.])
    """
    leaves, spec = check(xs)
    record = recorder()
    if record is not None:
        found = record("map", f, leaves, spec, args)
        if found is not NotImplemented:
            return found
    rows, shape = [], None
    for i in range(leaves[0].size(0)):
        found = f(tree_unflatten([leaf[i] for leaf in leaves], spec), *args)
        parts, shape = tree_flatten(found)
        rows.append(parts)
    stacked = [taeda.stack(column) for column in zip(*rows, strict=True)]
    return tree_unflatten(stacked, shape)


def check(xs) -> tuple:
    """(leaves, structure) of what `map` goes over."""
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(x, taeda.Tensor) for x in leaves):
        raise RuntimeError(f"map: Mapped xs can only consist of tensors. Got xs {xs}.")
    shapes = [x.shape for x in leaves]
    sizes = [shape[0] if shape else 0 for shape in shapes]
    if any(size != sizes[0] for size in sizes[1:]):
        raise RuntimeError(
            "map: Leading dimensions of mapped xs must be consistent. Got shapes "
            f"{shapes}."
        )
    if 0 in sizes:
        raise RuntimeError("map: Leading dimensions of mapped xs cannot be 0.")
    return leaves, spec
