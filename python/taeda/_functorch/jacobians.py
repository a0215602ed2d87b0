"""Jacobians and Hessians: products with all unit vectors at once."""

from __future__ import annotations

import functools

import taeda
from taeda._functorch.derivatives import by_places, jvp, places_of, vjp
from taeda._functorch.vmap import vmap
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def _only_real(who: str, what: str, tensors: list) -> None:
    for i, t in enumerate(tensors):
        if isinstance(t, taeda.Tensor) and t.is_complex():
            raise RuntimeError(
                f"{who}: Expected all {what}s to be real but received complex tensor "
                f"at flattened {what} idx: {i}"
            )


def _units(tensors: list) -> list:
    """For each tensor, as rows, what it has in every unit vector of them all."""
    total = sum(t.numel() for t in tensors)
    units, start = [], 0
    for t in tensors:
        unit = taeda.zeros(total, t.numel(), dtype=t.dtype, device=t.device)
        unit.diagonal(-start).fill_(1)
        units.append(unit.view(total, *t.shape))
        start += t.numel()
    return units


def _blocks(columns: list, tensors: list, front: bool) -> list:
    """Products with unit vectors, cut by the tensor that the unit belongs to.

    `columns[i]` has the units in dim 0. The result is a list by tensor of lists by
    column, with the tensor's shape in the front or at the end.
    """
    blocks, start = [], 0
    for t in tensors:
        count, block = t.numel(), []
        for column in columns:
            whole = len(tensors) == 1
            part = column if whole else column.narrow(0, start, count)
            if not front:
                part = part.movedim(0, -1)
            rest = tuple(column.shape[1:])
            shape = (*t.shape, *rest) if front else (*rest, *t.shape)
            block.append(part if part.shape == shape else part.reshape(shape))
        blocks.append(block)
        start += count
    return blocks


def _pulled(product, spec, *cotangents):
    return product(tree_unflatten(list(cotangents), spec))


def jacrev(
    func,
    argnums=0,
    *,
    has_aux: bool = False,
    chunk_size=None,
    _preallocate_and_copy: bool = False,
):
    """A function that returns the Jacobian by products from the left.

    Args:
        func: returns real tensors, or (them, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (Jacobian, aux).
        chunk_size: how many rows are computed at once (all of them if None).
        _preallocate_and_copy: has no effect: chunks are joined once.

    Returns:
        The function gives, for each output, a tensor of the shapes of the output and
        the input (containers of outputs outside, those of inputs inside).

    Raises:
        ValueError: chunk_size below 1.
        RuntimeError: no such argument, complex tensors, no tensors.

    Example:
        >>> taeda.func.jacrev(lambda x: x * x)(taeda.ones(2))
        tensor([[2., 0.],
                [0., 2.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"jacrev: `chunk_size` should be greater than 0. (got {chunk_size})"
        )

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        places = places_of(argnums, len(args))
        primals = tuple(args[place] for place in places)
        _only_real("jacrev", "input", tree_flatten(primals)[0])
        chosen = by_places(func, places, args, kwargs)
        value, product, *aux = vjp(chosen, *primals, has_aux=has_aux)
        outputs, out_spec = tree_flatten(value)
        _only_real("jacrev", "output", outputs)
        pull = functools.partial(_pulled, product, out_spec)
        units = _units(outputs)
        if chunk_size == 1:  # what vmap has no rule for works row by row
            rows = [pull(*row) for row in zip(*units, strict=True)]
            rows = tree_map(lambda *parts: taeda.stack(parts), *rows)
        else:
            rows = vmap(pull, chunk_size=chunk_size)(*units)
        leaves, in_spec = tree_flatten(rows)
        blocks = _blocks(leaves, outputs, front=True)
        trees = [tree_unflatten(block, in_spec) for block in blocks]
        if isinstance(argnums, int):
            trees = [tree[0] for tree in trees]
        result = tree_unflatten(trees, out_spec)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacfwd(func, argnums=0, has_aux: bool = False, *, randomness: str = "error"):
    """A function that returns the Jacobian by products from the right.

    Args:
        func: returns real tensors, or (them, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (Jacobian, aux).
        randomness: what random operators in func do, as in `vmap`.

    Returns:
        The function gives what that of `jacrev` gives.

    Raises:
        RuntimeError: no such argument, complex tensors, no tensors.

    Example:
        >>> taeda.func.jacfwd(lambda x: x * x)(taeda.ones(2))
        tensor([[2., 0.],
                [0., 2.]])
    """

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        places = places_of(argnums, len(args))
        primals = tuple(args[place] for place in places)
        inputs, in_spec = tree_flatten(primals)
        _only_real("jacfwd", "input", inputs)
        chosen = by_places(func, places, args, kwargs)

        def push(*units):
            tangents = tree_unflatten(list(units), in_spec)
            _, moved, *aux = jvp(chosen, primals, tangents, has_aux=has_aux)
            _only_real("jacfwd", "output", tree_flatten(moved)[0])
            return moved, aux

        moved, aux = vmap(push, randomness=randomness)(*_units(inputs))
        columns, out_spec = tree_flatten(moved)
        by_input = _blocks(columns, inputs, front=False)
        trees = []
        for i in range(len(columns)):
            tree = tree_unflatten([block[i] for block in by_input], in_spec)
            trees.append(tree[0] if isinstance(argnums, int) else tree)
        result = tree_unflatten(trees, out_spec)
        # What func computes beside its result is that of the first column.
        return (result, tree_map(lambda t: t[0], aux[0])) if has_aux else result

    return jacobian


def hessian(func, argnums=0):
    """A function that returns the second derivatives: the Jacobian of the Jacobian.

    Args:
        func: returns real tensors.
        argnums: the positional argument, or several, to differentiate by.

    Example:
        >>> taeda.func.hessian(lambda x: (x * x).sum())(taeda.ones(2))
        tensor([[2., 0.],
                [0., 2.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
