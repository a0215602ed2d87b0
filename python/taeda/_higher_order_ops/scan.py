"""Running values along a dim, and what each step gives."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops._recorder import recorder
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["scan"]


def scan(combine_fn, init, xs, *, dim: int = 0, reverse: bool = False):
    """Hands a value from element to element: carry, y = combine_fn(carry, x).

    Args:
        combine_fn: takes the value so far and an element, gives both next ones; the
            first of them like init.
        init: the first value, a tree of tensors.
        xs: a tree of tensors of the same size along `dim`.
        dim: the dim to go along.
        reverse: from the end; each y stands where its x does.

    Returns:
        The last value, and the y's stacked along `dim`, or along their first dim where
        they have fewer.

    Raises:
        RuntimeError: combine_fn cannot be called, init is empty, sizes differ, reverse
            is no bool, or the next value is not like init.
        IndexError: no such dim.

    Example:
        >>> from taeda._higher_order_ops import scan
        >>> scan(lambda c, x: (c + x, c * x), taeda.tensor(1.0), taeda.arange(3.0))
        (tensor(4.), tensor([0., 1., 4.]))
    """
    count = check(combine_fn, init, xs, dim, reverse)
    leaves, spec = tree_flatten(xs)
    if not leaves:
        return init, xs
    record = recorder() if _is_some(count) else None
    if record is not None:
        found = _recorded(record, combine_fn, init, (leaves, spec), dim, reverse)
        if found is not NotImplemented:
            return found
    carry, rows, shape = init, [], None
    for i in reversed(range(count)) if reverse else range(count):
        item = tree_unflatten([leaf.select(dim, i) for leaf in leaves], spec)
        carry, y = step(combine_fn, carry, item)
        parts, shape = tree_flatten(y)
        rows.append(parts)
    if reverse:
        rows.reverse()
    stacked = [taeda.stack(column) for column in zip(*rows, strict=True)]
    stacked = [placed(y, leaves[0], dim) for y in stacked]
    return carry, tree_unflatten(stacked, shape)


def placed(y, like, dim: int):
    """Rows of a first dim along the dim that they stood along in `like`."""
    dim %= like.dim()
    return y.movedim(0, dim) if 0 < dim < y.dim() else y


def _is_some(count) -> bool:
    return isinstance(count, taeda.SymInt) or count > 0


def _recorded(record, combine_fn, init, xs: tuple, dim: int, reverse: bool):
    """As `scan`, for a recorder of scans along first dims from the front."""
    leaves, spec = xs
    rows = [x.movedim(dim, 0) if dim else x for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]
    found = record("scan", combine_fn, init, rows, spec)
    if found is NotImplemented:
        return found
    carry, ys, shape = found
    if reverse:
        ys = [y.flip(0) for y in ys]
    return carry, tree_unflatten([placed(y, leaves[0], dim) for y in ys], shape)


def check(combine_fn, init, xs, dim, reverse) -> int:
    """The number of steps; RuntimeError for arguments that `scan` does not take."""
    if not callable(combine_fn):
        raise RuntimeError(f"scan: Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"scan: Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"scan: Reverse must be a bool, but got {type(reverse)}")
    if not tree_flatten(init)[0]:
        raise RuntimeError("scan() operator requires init leaves.")
    leaves = tree_flatten(xs)[0]
    sizes = [leaf.size(dim) for leaf in leaves]
    if any(size != sizes[0] for size in sizes[1:]):
        raise RuntimeError(
            "scan: All xs leaves must have the same number of elements along dim "
            f"{dim}, got {sorted(set(sizes))}"
        )
    return sizes[0] if sizes else 0


def step(combine_fn, carry, item) -> tuple:
    """(next value, y), if the value is like the one before."""
    return checked(combine_fn(carry, item), carry)


def checked(found, carry) -> tuple:
    """What combine_fn returned, if its value is like the one before."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            f"scan: combine_fn must return (next_carry, y), got {type(found).__name__}"
        )
    before, after = tree_flatten(carry), tree_flatten(found[0])
    if before[1] != after[1]:
        raise RuntimeError(
            "scan: Expected init and carry to have the same structure, got "
            f"{before[1]} and {after[1]}"
        )
    for a, b in zip(before[0], after[0], strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise RuntimeError(
                "scan: Expected init and carry to have same metadata, got "
                f"{tuple(a.shape)} {a.dtype} and {tuple(b.shape)} {b.dtype}"
            )
    return found
