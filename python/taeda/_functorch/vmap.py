"""A function over the elements of a batch."""

from __future__ import annotations

import taeda
from taeda._functorch.levels import batch_level
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["vmap"]


def _spread(dims, values, what: str = "in_dims") -> list:
    """The dims of each leaf of `values`, where `dims` may stop further up."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(values)[0])
    if isinstance(values, (list, tuple)) and isinstance(dims, (list, tuple)):
        if len(values) == len(dims):
            return [
                d
                for pair in zip(dims, values, strict=True)
                for d in _spread(*pair, what)
            ]
    elif isinstance(values, dict) and isinstance(dims, dict):
        if values.keys() == dims.keys():
            return [d for key in values for d in _spread(dims[key], values[key], what)]
    raise ValueError(
        f"vmap: {what} is not compatible with the structure of the values: "
        f"{what} {dims!r}, values of {type(values).__name__}"
    )


def _batch_size(leaves: list, dims: list) -> int:
    sizes = set()
    for leaf, dim in zip(leaves, dims, strict=False):
        if dim is None:
            continue
        if not isinstance(leaf, taeda.Tensor):
            raise ValueError(
                f"vmap: Got in_dim={dim} for an input but the input is of type "
                f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use "
                "None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {leaf.dim()} so expected in_dim to satisfy "
                f"-{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        sizes.add(leaf.size(dim))
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over")
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped "
            f"dimension, got sizes {sorted(sizes)} for the mapped dimension"
        )
    return sizes.pop()


def _shown(level, result, out_dims):
    """The results with the mapped dim where `out_dims` wants it."""
    leaves, spec = tree_flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, taeda.Tensor):
            raise ValueError(
                "vmap: the function must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )
    dims = _spread(out_dims, result, "out_dims")
    return tree_unflatten(
        [_placed(level, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)],
        spec,
    )


def _placed(level, leaf, dim: int | None):
    if dim is not None:
        return level.unwrap(leaf, dim)
    if level.has_batch(leaf):
        raise ValueError(
            "vmap: the function can not return a BatchedTensor when out_dim is None"
        )
    return leaf


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size=None):
    """A function that maps `func` over a dim of its arguments.

    Args:
        func: takes tensors (or nested containers of them) without the mapped dim.
        in_dims: the mapped dim of each positional argument; None for one that every
            call gets whole.
        out_dims: where the mapped dim stands in the results.
        randomness: "error" refuses random operators, "same" draws the same numbers
            for each element, "different" others.
        chunk_size: how many elements are mapped at once (all of them if None).

    Returns:
        The function; its named arguments are mapped over dim 0.

    Raises:
        ValueError: the arguments do not agree with `in_dims`.
        RuntimeError: random operators in "error" mode.

    Example:
        >>> taeda.vmap(taeda.dot)(taeda.ones(2, 3), taeda.ones(2, 3))
        tensor([3., 3.])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or > 0. (got {chunk_size})")

    def mapped(*args, **kwargs):
        dims = in_dims if isinstance(in_dims, (int, type(None))) else tuple(in_dims)
        leaves, spec = tree_flatten((args, kwargs))
        spots = _spread(dims, args) + _spread(0, kwargs)
        count = _batch_size(leaves, spots)
        if chunk_size is None or chunk_size >= count:
            return _run(func, leaves, spots, spec, out_dims, count, randomness)
        parts = []
        for start in range(0, count, chunk_size):
            size = min(chunk_size, count - start)
            some = [
                leaf if dim is None else leaf.narrow(dim, start, size)
                for leaf, dim in zip(leaves, spots, strict=True)
            ]
            parts.append(_run(func, some, spots, spec, out_dims, size, randomness))
        return _joined(parts, out_dims)

    from functools import wraps

    return wraps(func)(mapped) if hasattr(func, "__name__") else mapped


def _run(func, leaves: list, dims: list, spec, out_dims, count: int, randomness: str):
    level = batch_level(count, randomness)
    inside = [
        leaf if dim is None else level.wrap(leaf, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    args, kwargs = tree_unflatten(inside, spec)
    with level:
        result = func(*args, **kwargs)
    return _shown(level, result, out_dims)


def _joined(parts: list, out_dims):
    """The results of chunks one behind the other."""
    flat = [tree_flatten(part) for part in parts]
    leaves, spec = flat[0]
    dims = _spread(out_dims, parts[0], "out_dims")
    joined = [
        leaves[i] if dim is None else taeda.cat([each[i] for each, _ in flat], dim)
        for i, dim in enumerate(dims)
    ]
    return tree_unflatten(joined, spec)
