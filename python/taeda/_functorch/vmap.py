"""A function over the elements of a batch.

What `vmap` does before and after the call stands under PyTorch's private names, read
when they are called: packages whose containers of tensors have their own way through a
transform, such as tensordict, put functions of theirs in their place.
"""

from __future__ import annotations

import functools

import taeda
from taeda import Tensor
from taeda._functorch.levels import batch_level
from taeda._functorch.nesting import _add_batch_dim, _remove_batch_dim, level_at
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["chunk_vmap", "vmap"]


def _get_name(func) -> str:
    return getattr(func, "__name__", None) or repr(func)


_OTHER_OUTPUTS = "out_dims is not compatible with the structure of `outputs`"


def _expanded(dims, spec, what: str) -> list:
    """The dims of each leaf of a tree, where `dims` may stop further up.

    Raises:
        ValueError: another structure; `what` says of which dims.
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
            f"{what}: it has structure {own}, which is no beginning of {spec}."
        )
    return found


def _broadcast_to_and_flatten(dims, spec) -> list | None:
    """The dims of each leaf of a tree; None where they have another structure."""
    try:
        return _expanded(dims, spec, "")
    except ValueError:
        return None


def _process_batched_inputs(in_dims, args: tuple, func) -> tuple:
    """(elements, the dim of each leaf, the leaves, their structure), checked."""
    where = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}expected `in_dims` to be int or a (potentially nested) tuple "
            f"matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to "
            "add inputs, or the function has none to be mapped over."
        )
    leaves, spec = tree_flatten(args)
    what = f"{where}in_dims is not compatible with the structure of `inputs`"
    dims = _expanded(in_dims, spec, what)
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}Got in_dim={dim} for an input but in_dim must be either an "
                "integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
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
    return _batch_size(leaves, dims), dims, leaves, spec


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


def _create_batched_inputs(dims: list, leaves: list, level, spec) -> tuple:
    """The arguments as the function sees them, their mapped dims hidden."""
    inside = [
        leaf if dim is None else _add_batch_dim(leaf, dim, level)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    return tree_unflatten(inside, spec)


def _out_dims(func, out_dims, result, spec) -> list:
    """The dim of each leaf of what the function returned."""
    if not isinstance(out_dims, (int, type(None))):
        for dim in tree_flatten(out_dims)[0]:
            if not isinstance(dim, (int, type(None))):
                raise ValueError(
                    f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` "
                    "must be an int, None or a python collection of ints representing "
                    "where in the outputs the vmapped dimension should appear."
                )
    # Of a function with one result the dim may be given as a tuple.
    if isinstance(result, Tensor) and isinstance(out_dims, tuple):
        out_dims = out_dims[0] if len(out_dims) == 1 else out_dims
    where = f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): "
    return _expanded(out_dims, spec, where + _OTHER_OUTPUTS)


def _maybe_remove_batch_dim(name: str, leaf, level, size: int, dim: int | None):
    """A result with the mapped dim where it is wanted.

    Args:
        name: the function's, for messages.
        dim: None for a result that is the same for all elements.
    """
    if dim is None:
        if isinstance(leaf, Tensor) and level_at(level).holds(leaf):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a "
                "BatchedTensor when out_dim is None"
            )
        return leaf
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got "
            f"type {type(leaf)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(leaf, level, size, dim)


def _unwrap_batched(result, out_dims, level, size: int, func):
    """What the function returned, its mapped dims shown."""
    leaves, spec = tree_flatten(result)
    shown = [
        _maybe_remove_batch_dim(_get_name(func), leaf, level, size, dim)
        for leaf, dim in zip(
            leaves, _out_dims(func, out_dims, result, spec), strict=True
        )
    ]
    return tree_unflatten(shown, spec)


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

    return _mapped(func, in_dims, out_dims, randomness, lambda count: chunk_size)


def chunk_vmap(func, in_dims=0, out_dims=0, randomness: str = "error", chunks=2):
    """`vmap` over a number of chunks of the batch, one after the other.

    Args:
        func, in_dims, out_dims, randomness: as `vmap` takes them.
        chunks: how many parts the batch is cut into, as `Tensor.chunk` cuts.

    Returns:
        The function that maps `func`; its results are what `vmap` gives.

    Raises:
        ValueError: as in `vmap`, and where `chunks` is below one.

    Example:
        >>> from taeda._functorch.vmap import chunk_vmap
        >>> chunk_vmap(taeda.sum, chunks=3)(taeda.ones(4, 2))
        tensor([2., 2., 2., 2.])
    """
    if chunks < 1:
        raise ValueError(f"chunk_vmap: chunks should be 1 or more. (got {chunks})")
    return _mapped(func, in_dims, out_dims, randomness, lambda n: -(-n // chunks))


def _mapped(func, in_dims, out_dims, randomness: str, elements_at_once):
    """The function that maps `func`, as many elements at once as is answered."""

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        count, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)

        def run(leaves, count):
            level = batch_level(count, randomness)
            with level:
                result = func(
                    *_create_batched_inputs(dims, leaves, level, spec), **kwargs
                )
            return _unwrap_batched(result, out_dims, level, count, func)

        at_once = elements_at_once(count)
        if at_once is None or at_once >= count:
            return run(leaves, count)
        if randomness == "same":
            run = _from_one_state(run)
        return _in_chunks(run, leaves, dims, count, at_once, out_dims)

    return mapped


def _from_one_state(run):
    """`run`, whose every call draws the numbers that the first one drew."""
    state = taeda.get_rng_state()

    def again(*args):
        taeda.set_rng_state(state)
        return run(*args)

    return again


def _in_chunks(run, leaves: list, dims: list, count: int, chunk_size: int, out_dims):
    """The results of chunks, one behind the other."""
    parts = []
    for start in range(0, count, chunk_size):
        size = min(chunk_size, count - start)
        some = [
            leaf if dim is None else leaf.narrow(dim, start, size)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        parts.append(tree_flatten(run(some, size)))
    first, spec = parts[0]
    if isinstance(out_dims, tuple) and spec.is_leaf():
        (out_dims,) = out_dims
    joined = [
        leaf if dim is None else taeda.cat([part[i] for part, _ in parts], dim)
        for i, (leaf, dim) in enumerate(
            zip(
                first, _expanded(out_dims, spec, f"vmap: {_OTHER_OUTPUTS}"), strict=True
            )
        )
    ]
    return tree_unflatten(joined, spec)
