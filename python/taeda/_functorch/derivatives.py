"""Gradients, products with Jacobians, and Jacobians of functions."""

from __future__ import annotations

import taeda
from taeda._functorch.levels import dual_level, grad_level
from taeda._functorch.vmap import vmap
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


def _leaf(level, t):
    """A new leaf of the level around a tensor; what is no tensor stays."""
    return level.wrap(t).requires_grad_() if isinstance(t, taeda.Tensor) else t


def _outside(level, tree):
    """Results as the caller sees them: the values inside the level's wrappers."""
    return tree_map(
        lambda t: level.unwrap(t) if isinstance(t, taeda.Tensor) else t, tree
    )


def _gradients(outputs, inputs, cotangents, create_graph: bool = False):
    """Gradients within one level; zeros where there is no way."""
    pairs = [
        (o, c) for o, c in zip(outputs, cotangents, strict=False) if o.requires_grad
    ]
    if not pairs:
        return [taeda.zeros_like(t) for t in inputs]
    found = taeda.autograd.grad(
        [o for o, _ in pairs],
        inputs,
        [c for _, c in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [
        taeda.zeros_like(t) if g is None else g
        for t, g in zip(inputs, found, strict=False)
    ]


def _places(argnums, count: int) -> tuple[int, ...]:
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for place in places:
        if not -count <= place < count:
            raise RuntimeError(
                f"Got argnum={place}, but only {count} positional inputs"
            )
    return tuple(place % count for place in places)


def _split(level, func, args: tuple, kwargs: dict, argnums, has_aux: bool):
    """(values of func, aux, leaves, spec of the chosen arguments); inside `level`."""
    places = _places(argnums, len(args))
    args = list(args)
    chosen, spec = tree_flatten(tuple(args[place] for place in places))
    leaves = [_leaf(level, t) for t in chosen]
    for place, value in zip(places, tree_unflatten(leaves, spec), strict=True):
        args[place] = value
    value, aux = _with_aux(func(*args, **kwargs), has_aux)
    return value, aux, leaves, spec


def _with_aux(result, has_aux: bool):
    """(value, aux) of what a function returned."""
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            "expected the function to return a tuple (output, aux) when has_aux=True"
        )
    return result if has_aux else (result, None)


def grad_and_value(func, argnums=0, has_aux: bool = False):
    """A function that returns (gradients, value) of a scalar function.

    Args:
        func: returns a tensor of one element, or (it, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether func returns a second value, handed on as (value, aux).
    """

    def differentiated(*args, **kwargs):
        with grad_level() as level, taeda.enable_grad():
            value, aux, leaves, spec = _split(
                level, func, args, kwargs, argnums, has_aux
            )
            if not isinstance(value, taeda.Tensor):
                raise RuntimeError(
                    f"Expected f(*args) to return a Tensor, got type {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    "Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev "
                    "APIs instead?"
                )
            found = _gradients([value], leaves, [taeda.ones_like(value)])
        gradients = tree_unflatten(found, spec)
        gradients = gradients[0] if isinstance(argnums, int) else gradients
        gradients, value, aux = _outside(level, (gradients, value, aux))
        return gradients, ((value, aux) if has_aux else value)

    return differentiated


def grad(func, argnums=0, has_aux: bool = False):
    """A function that returns the gradient of a scalar function.

    Args:
        func: returns a tensor of one element, or (it, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (gradient, aux).

    Example:
        >>> taeda.func.grad(lambda x: (x * x).sum())(taeda.ones(2))
        tensor([2., 2.])
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def vjp(func, *primals, has_aux: bool = False):
    """(func(*primals), a function from cotangents to gradients)."""
    places = tuple(range(len(primals)))
    with grad_level() as level, taeda.enable_grad():
        value, aux, leaves, spec = _split(level, func, primals, {}, places, has_aux)
    outputs, out_spec = tree_flatten(value)
    for output in outputs:
        if not isinstance(output, taeda.Tensor):
            raise RuntimeError(
                "vjp(f, *primals): expected f(*primals) to return only tensors, got "
                f"{type(output).__name__}"
            )

    def product(cotangents, retain_graph: bool = True, create_graph: bool = True):
        given, given_spec = tree_flatten(cotangents)
        if len(given) != len(outputs):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree "
                f"structure of outputs to the function. cotangents: {given_spec}, "
                f"primal output: {out_spec}"
            )
        found = _gradients(outputs, leaves, given, taeda.is_grad_enabled())
        return _outside(level, tree_unflatten(found, spec))

    shown, aux = _outside(level, (value, aux))
    return (shown, product, aux) if has_aux else (shown, product)


def jvp(func, primals, tangents, *, strict: bool = False, has_aux: bool = False):
    """(func(*primals), its derivative along the tangents).

    Args:
        func: returns tensors, or (them, anything) with has_aux.
        primals: a tuple of the arguments.
        tangents: a tuple of directions, shaped like the arguments.
        strict: whether an output that does not depend on the arguments is an error.
        has_aux: whether to return (value, derivative, aux).

    Raises:
        RuntimeError: primals and tangents differ in structure; an output that is no
            tensor; with strict, one that depends on no argument.

    Example:
        >>> taeda.func.jvp(taeda.sin, (taeda.zeros(2),), (taeda.ones(2),))
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to be a tuple. E.g. it "
                f"should be valid to call f(*primals). Got {type(given)}"
            )
    points, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other or not points:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same "
            f"python structure and at least one tensor. primals: {spec}, tangents: "
            f"{other}"
        )
    with dual_level() as level:
        duals = [
            level.make_dual(*pair) for pair in zip(points, directions, strict=True)
        ]
        value, aux = _with_aux(func(*tree_unflatten(duals, spec)), has_aux)
    outputs, out_spec = tree_flatten(value)
    moved = [_direction(level, output, strict) for output in outputs]
    shown = tree_unflatten([level.primal(t) for t in outputs], out_spec)
    moved = tree_unflatten(moved, out_spec)
    if not has_aux:
        return shown, moved
    plain = tree_map(
        lambda t: level.primal(t) if isinstance(t, taeda.Tensor) else t, aux
    )
    return shown, moved, plain


def _direction(level, output, strict: bool):
    """An output's tangent; zeros where it has none."""
    if not isinstance(output, taeda.Tensor):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected f(*primals) to return only tensors, "
            f"got output with type {type(output)}"
        )
    found = level.tangent(output)
    if found is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent "
            "of the inputs. This is not allowed with strict=True."
        )
    return taeda.zeros_like(output) if found is None else found


def linearize(func, *primals):
    """(func(*primals), the linear function that approximates it there)."""
    value = func(*primals)

    def line(*tangents):
        return jvp(func, primals, tangents)[1]

    return value, line


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
        func: returns tensors, or (them, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (Jacobian, aux).
        chunk_size: how many rows are computed at once (all of them if None).
    """

    def jacobian(*args, **kwargs):
        places = _places(argnums, len(args))

        def chosen(*values):
            given = list(args)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return func(*given, **kwargs)

        primals = tuple(args[place] for place in places)
        value, product, *aux = vjp(chosen, *primals, has_aux=has_aux)
        outputs, out_spec = tree_flatten(value)
        units = _units(outputs)
        rows = vmap(
            lambda *cotangents: product(tree_unflatten(list(cotangents), out_spec)),
            chunk_size=chunk_size,
        )(*units)
        leaves, in_spec = tree_flatten(rows)
        blocks = _blocks(leaves, outputs, front=True)
        trees = [tree_unflatten(block, in_spec) for block in blocks]
        if isinstance(argnums, int):
            trees = [tree[0] for tree in trees]
        result = tree_unflatten(trees, out_spec)
        return (result, aux[0]) if has_aux else result

    return jacobian


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
            part = column.narrow(0, start, count)
            if front:
                block.append(part.reshape(*t.shape, *column.shape[1:]))
            else:
                moved = part.movedim(0, -1)
                block.append(moved.reshape(*column.shape[1:], *t.shape))
        blocks.append(block)
        start += count
    return blocks


def jacfwd(
    func,
    argnums=0,
    has_aux: bool = False,
    *,
    chunk_size=None,
    randomness: str = "error",
):
    """A function that returns the Jacobian by products from the right.

    Args:
        func: returns tensors, or (them, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (Jacobian, aux).
        chunk_size: how many columns are computed at once (all of them if None).
        randomness: what random operators in func do, as in `vmap`.
    """

    def jacobian(*args, **kwargs):
        places = _places(argnums, len(args))

        def chosen(*values):
            given = list(args)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return func(*given, **kwargs)

        primals = tuple(args[place] for place in places)
        inputs, in_spec = tree_flatten(primals)
        kept = []

        def push(*units):
            tangents = tree_unflatten(list(units), in_spec)
            value, moved, *aux = jvp(chosen, primals, tangents, has_aux=has_aux)
            kept[:] = [tree_flatten(value)[0], *aux]
            return moved

        moved = vmap(push, chunk_size=chunk_size, randomness=randomness)(
            *_units(inputs)
        )
        columns, out_spec = tree_flatten(moved)
        by_input = _blocks(columns, inputs, front=False)
        trees = []
        for i in range(len(columns)):
            tree = tree_unflatten([block[i] for block in by_input], in_spec)
            trees.append(tree[0] if isinstance(argnums, int) else tree)
        result = tree_unflatten(trees, out_spec)
        return (result, kept[1]) if has_aux else result

    return jacobian


def hessian(func, argnums=0):
    """A function that returns the second derivatives: the Jacobian of the Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)
