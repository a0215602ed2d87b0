"""A function over the elements of a batch."""

from __future__ import annotations

import functools

import taeda
from taeda._functorch.levels import batch_level
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["vmap"]


def _name(func) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _expanded(dims, spec, what: str) -> list:
    """The dims of each leaf of a tree, where `dims` may stop further up.

    Raises:
        ValueError: another structure; `what` begins the message.
    """
    chosen, own = tree_flatten(dims)
    rest = iter(chosen)

    def below(mine, theirs) -> list | None:
        if mine.is_leaf():
            return [next(rest)] * theirs.num_leaves
        same = (mine.type, mine.context) == (theirs.type, theirs.context)
        if not same or mine.num_children != theirs.num_children:
            return None
        parts = [
            below(*pair)
            for pair in zip(mine.children(), theirs.children(), strict=True)
        ]
        return None if None in parts else [dim for part in parts for dim in part]

    found = below(own, spec)
    if found is None:
        raise ValueError(
            f"{what} is not compatible with the structure it is for: it has "
            f"structure {own}, which is no beginning of {spec}."
        )
    return found


def _in_dims(func, in_dims, args: tuple) -> tuple[list, list, object]:
    """(leaves of the arguments, the dim of each, their structure), checked."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add "
            "inputs, or the function has none to be mapped over."
        )
    leaves, spec = tree_flatten(args)
    dims = _expanded(in_dims, spec, f"{where}in_dims")
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if not isinstance(leaf, taeda.Tensor):
            raise ValueError(
                f"{where}Got in_dim={dim} for an input but the input is of type "
                f"{type(leaf)}. We cannot vmap over non-Tensor arguments, please use "
                "None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{where}Got in_dim={dim} for some input, but that input is a Tensor "
                f"of dimensionality {leaf.dim()} so expected in_dim to satisfy "
                f"-{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        if dim < 0:
            dims[i] = dim + leaf.dim()
    return leaves, dims, spec


def _batch_size(leaves: list, dims: list) -> int:
    sizes = {
        leaf.size(dim)
        for leaf, dim in zip(leaves, dims, strict=True)
        if dim is not None
    }
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped "
            f"dimension, got sizes {sorted(sizes)} for the mapped dimension"
        )
    return sizes.pop()


def _out_dims(func, out_dims, result) -> tuple[list, list, object]:
    """(leaves of what the function returned, the dim of each, their structure)."""
    if not isinstance(out_dims, (int, type(None))):
        for dim in tree_flatten(out_dims)[0]:
            if not isinstance(dim, (int, type(None))):
                raise ValueError(
                    f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must "
                    "be an int, None or a python collection of ints representing "
                    "where in the outputs the vmapped dimension should appear."
                )
    leaves, spec = tree_flatten(result)
    # Of a function with one result the dim may be given as a tuple.
    if isinstance(result, taeda.Tensor) and isinstance(out_dims, tuple):
        out_dims = out_dims[0] if len(out_dims) == 1 else out_dims
    what = f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims"
    return leaves, _expanded(out_dims, spec, what), spec


def _placed(level, func, leaf, dim: int | None):
    """A result with the mapped dim where it is wanted."""
    if dim is None:
        if isinstance(leaf, taeda.Tensor) and level.holds(leaf):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a "
                "BatchedTensor when out_dim is None"
            )
        return leaf
    if not isinstance(leaf, taeda.Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got "
            f"type {type(leaf)}. Did you mean to set out_dims= to None for output?"
        )
    return level.unwrap(leaf, dim)


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size=None):
    """A function that maps `func` over a dim of its arguments.

    Args:
        func: takes tensors (or nested containers of them) without the mapped dim.
        in_dims: the mapped dim of each positional argument; None for one that every
            call gets whole. A nested container where an argument is one.
        out_dims: where the mapped dim stands in the results, None for those that
            are the same for all elements.
        randomness: "error" refuses random operators, "same" draws the same numbers
            for each element, "different" others.
        chunk_size: how many elements are mapped at once (all of them if None).

    Returns:
        The function; its named arguments are handed on as they are.

    Raises:
        ValueError: the arguments do not agree with `in_dims`, or the results with
            `out_dims`.
        RuntimeError: random operators in "error" mode; operators whose course or
            result's shape depends on values that differ between the elements.

    Example:
        >>> taeda.vmap(taeda.dot)(taeda.ones(2, 3), taeda.ones(2, 3))
        tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        )

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, dims, spec = _in_dims(func, in_dims, args)
        count = _batch_size(leaves, dims)

        def run(leaves, count):
            level = batch_level(count, randomness)
            with level:
                inside = [
                    leaf if dim is None else level.wrap(leaf, dim)
                    for leaf, dim in zip(leaves, dims, strict=True)
                ]
                result = func(*tree_unflatten(inside, spec), **kwargs)
            found, spots, shape = _out_dims(func, out_dims, result)
            placed = [
                _placed(level, func, leaf, dim)
                for leaf, dim in zip(found, spots, strict=True)
            ]
            return placed, spots, shape

        if chunk_size is None or chunk_size >= count:
            placed, _, shape = run(leaves, count)
        else:
            placed, shape = _in_chunks(run, leaves, dims, count, chunk_size)
        return tree_unflatten(placed, shape)

    return mapped


def _in_chunks(run, leaves: list, dims: list, count: int, chunk_size: int) -> tuple:
    """(leaves, structure) of the results of chunks, one behind the other."""
    parts = []
    for start in range(0, count, chunk_size):
        size = min(chunk_size, count - start)
        some = [
            leaf if dim is None else leaf.narrow(dim, start, size)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        parts.append(run(some, size))
    first, spots, shape = parts[0]
    joined = [
        leaf if dim is None else taeda.cat([part[0][i] for part in parts], dim)
        for i, (leaf, dim) in enumerate(zip(first, spots, strict=True))
    ]
    return joined, shape
