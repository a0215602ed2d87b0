"""A function over the elements of a batch."""

from __future__ import annotations

import taeda
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["vmap"]


def _spread(dims, values) -> list:
    """The dims of each leaf of `values`, where `dims` may stop further up."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(values)[0])
    if isinstance(values, (list, tuple)) and isinstance(dims, (list, tuple)):
        if len(values) == len(dims):
            return [
                d for pair in zip(dims, values, strict=False) for d in _spread(*pair)
            ]
    elif isinstance(values, dict) and isinstance(dims, dict):
        if values.keys() == dims.keys():
            return [d for key in values for d in _spread(dims[key], values[key])]
    raise ValueError(
        "vmap: in_dims is not compatible with the structure of inputs: "
        f"in_dims {dims!r}, inputs of {type(values).__name__}"
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


def _stacked(results: list, out_dims):
    flat = [tree_flatten(result) for result in results]
    leaves, spec = flat[0]
    for leaf in leaves:
        if not isinstance(leaf, taeda.Tensor):
            raise ValueError(
                "vmap: the function must only return Tensors, got type "
                f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
            )
    dims = _spread(out_dims, tree_unflatten(leaves, spec))
    joined = []
    for place, dim in enumerate(dims):
        if dim is None:
            joined.append(leaves[place])
        else:
            joined.append(taeda.stack([each[place] for each, _ in flat], dim))
    return tree_unflatten(joined, spec)


class _Draws:
    """Random numbers of the calls: refused, the same, or going on."""

    def __init__(self, randomness: str) -> None:
        if randomness not in ("error", "different", "same"):
            raise RuntimeError(
                "Only allowed values for randomness are 'error', 'different', or "
                f"'same'. Got {randomness}"
            )
        self.kind = randomness
        self.start = None if randomness == "different" else taeda.get_rng_state()

    def before(self) -> None:
        if self.kind == "same":
            taeda.set_rng_state(self.start)

    def after(self) -> None:
        if self.kind == "error" and not taeda.equal(self.start, taeda.get_rng_state()):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please "
                "either use the 'same' or 'different' randomness flags on vmap or "
                "perform the randomness operation out of vmap"
            )


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size=None):
    """A function that maps `func` over a dim of its arguments.

    Args:
        func: takes tensors (or nested containers of them) without the mapped dim.
        in_dims: the mapped dim of each positional argument; None for one that every
            call gets whole.
        out_dims: where the mapped dim stands in the results.
        randomness: "error" refuses random operators, "same" draws the same numbers
            for each element, "different" others.
        chunk_size: accepted; elements go one by one.

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
        draws, results = _Draws(randomness), []
        for i in range(count):
            picked = [
                leaf if dim is None else leaf.select(dim, i)
                for leaf, dim in zip(leaves, spots, strict=False)
            ]
            own, named = tree_unflatten(picked, spec)
            draws.before()
            results.append(func(*own, **named))
            draws.after()
        if results:
            return _stacked(results, out_dims)
        return _empty(func, leaves, spots, spec, out_dims)

    from functools import wraps

    return wraps(func)(mapped) if hasattr(func, "__name__") else mapped


def _empty(func, leaves: list, spots: list, spec, out_dims):
    """The result of a batch of no elements, by the shapes of one made of zeros."""
    picked = [
        leaf if dim is None else leaf.sum(dim).to(leaf.dtype)
        for leaf, dim in zip(leaves, spots, strict=False)
    ]
    own, named = tree_unflatten(picked, spec)
    one = _stacked([func(*own, **named)], out_dims)
    if isinstance(out_dims, int):
        return tree_map(lambda t: t.narrow(out_dims, 0, 0), one)
    raise NotImplementedError("vmap: out_dims per result of an empty batch")
