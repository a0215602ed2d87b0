"""Gradients, products with Jacobians, and Jacobians of functions."""

from __future__ import annotations

import taeda
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


def _followed(t):
    """A tensor to differentiate by: connected to what an outer transform follows."""
    if not isinstance(t, taeda.Tensor):
        return t
    return t.view_as(t) if t.requires_grad else t.detach().requires_grad_()


def _reaches(t, own: set[int]) -> bool:
    """Whether a tensor's graph has a leaf that is not one of these tensors."""
    seen, stack = set(), [t.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in own:
            return True
        stack.extend(following for following, _ in node.next_functions)
    return False


def _released(tree, leaves: list):
    """Results; detached where they depend on nothing but `leaves`."""
    own = {id(t) for t in leaves if isinstance(t, taeda.Tensor) and t.is_leaf}

    def release(t):
        if not isinstance(t, taeda.Tensor) or not t.requires_grad:
            return t
        if t.grad_fn is None:
            return t.detach() if id(t) in own else t
        return t if _reaches(t, own) else t.detach()

    return tree_map(release, tree)


def _gradients(outputs, inputs, cotangents):
    """Gradients with their graph; zeros where there is no way."""
    pairs = [
        (o, c) for o, c in zip(outputs, cotangents, strict=False) if o.requires_grad
    ]
    if not pairs:
        return [taeda.zeros_like(t) for t in inputs]
    found = taeda.autograd.grad(
        [o for o, _ in pairs],
        inputs,
        [c for _, c in pairs],
        create_graph=True,
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


def _split(func, args: tuple, kwargs: dict, argnums, has_aux: bool):
    """(values of func, aux, followed leaves, spec of the chosen arguments)."""
    places = _places(argnums, len(args))
    args = list(args)
    chosen, spec = tree_flatten(tuple(args[place] for place in places))
    leaves = [_followed(leaf) for leaf in chosen]
    for place, value in zip(places, tree_unflatten(leaves, spec), strict=False):
        args[place] = value
    with taeda.enable_grad():
        result = func(*args, **kwargs)
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            "expected the function to return a tuple (output, aux) when has_aux=True"
        )
    value, aux = result if has_aux else (result, None)
    return value, aux, leaves, spec


def grad_and_value(func, argnums=0, has_aux: bool = False):
    """A function that returns (gradients, value) of a scalar function.

    Args:
        func: returns a tensor of one element, or (it, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether func returns a second value, handed on as (value, aux).
    """

    def differentiated(*args, **kwargs):
        value, aux, leaves, spec = _split(func, args, kwargs, argnums, has_aux)
        if not isinstance(value, taeda.Tensor):
            raise RuntimeError(
                f"Expected f(*args) to return a Tensor, got type {type(value)}"
            )
        if value.dim() != 0:
            raise RuntimeError(
                "Expected f(*args) to return a scalar tensor, got tensor with "
                f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs "
                "instead?"
            )
        with taeda.enable_grad():
            found = _gradients([value], leaves, [taeda.ones_like(value)])
        gradients = tree_unflatten(found, spec)
        gradients = gradients[0] if isinstance(argnums, int) else gradients
        gradients, value, aux = _released((gradients, value, aux), leaves)
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
    value, aux, leaves, spec = _split(func, primals, {}, places, has_aux)
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
        with taeda.enable_grad():
            found = _gradients(outputs, leaves, given)
        gradients = _released(tree_unflatten(found, spec), leaves)
        return gradients

    shown = _released(value, leaves)
    return (shown, product, aux) if has_aux else (shown, product)


def _tangent(outputs: list, leaves: list, tangents: list) -> list:
    """J v as the derivative of u -> u^T J, which is linear, by u."""
    with taeda.enable_grad():
        duals = [taeda.zeros_like(o).requires_grad_() for o in outputs]
        products = _gradients(outputs, leaves, duals)
        pairs = [
            (p, t) for p, t in zip(products, tangents, strict=False) if p.requires_grad
        ]
        if not pairs:
            return [taeda.zeros_like(o) for o in outputs]
        found = taeda.autograd.grad(
            [p for p, _ in pairs],
            duals,
            [t for _, t in pairs],
            create_graph=True,
            allow_unused=True,
        )
    leaves.extend(duals)
    return [
        taeda.zeros_like(o) if g is None else g
        for o, g in zip(outputs, found, strict=False)
    ]


def jvp(func, primals, tangents, *, strict: bool = False, has_aux: bool = False):
    """(func(*primals), its derivative along the tangents).

    Raises:
        NotImplementedError: strict.
    """
    if strict:
        raise NotImplementedError("func.jvp: strict=True is not implemented")
    places = tuple(range(len(primals)))
    value, aux, leaves, _ = _split(func, tuple(primals), {}, places, has_aux)
    outputs, spec = tree_flatten(value)
    moved = _tangent(outputs, leaves, tree_flatten(tuple(tangents))[0])
    moved = _released(tree_unflatten(moved, spec), leaves)
    shown = _released(value, leaves)
    return (shown, moved, aux) if has_aux else (shown, moved)


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
    """A function that returns the Jacobian, row by row.

    Args:
        func: returns tensors, or (them, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (Jacobian, aux).
        chunk_size: accepted; rows go one by one.
    """

    def jacobian(*args, **kwargs):
        value, aux, leaves, spec = _split(func, args, kwargs, argnums, has_aux)
        outputs, out_spec = tree_flatten(value)
        blocks = [_rows(output, leaves) for output in outputs]
        trees = [tree_unflatten(block, spec) for block in blocks]
        if isinstance(argnums, int):
            trees = [tree[0] for tree in trees]
        result, aux = _released((tree_unflatten(trees, out_spec), aux), leaves)
        return (result, aux) if has_aux else result

    return jacobian


def _rows(output, leaves: list) -> list:
    """d output / d leaf for each leaf, of shape output.shape + leaf.shape."""
    rows = []
    with taeda.enable_grad():
        for i in range(output.numel()):
            unit = taeda.zeros_like(output)
            unit.view(-1)[i] = 1
            rows.append(_gradients([output], leaves, [unit]))
        if not rows:
            return [leaf.new_zeros((*output.shape, *leaf.shape)) for leaf in leaves]
        return [
            taeda.stack(column).reshape(*output.shape, *column[0].shape)
            for column in zip(*rows, strict=False)
        ]


def jacfwd(
    func,
    argnums=0,
    has_aux: bool = False,
    *,
    chunk_size=None,
    randomness: str = "error",
):
    """As `jacrev`; which way the products go makes no difference to the result."""
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func, argnums=0):
    """A function that returns the second derivatives: the Jacobian of the Jacobian."""
    return jacrev(jacrev(func, argnums), argnums)
