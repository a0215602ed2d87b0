"""Gradients of functions, and products of vectors with their Jacobians."""

from __future__ import annotations

import functools

import taeda
from taeda import _C
from taeda._functorch.levels import dual_level, grad_level
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]


def _leaf(level, t):
    """A new leaf of the level around a tensor."""
    if not isinstance(t, taeda.Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
    return level.leaf(t)


def _outside(level, tree):
    """Results as the caller sees them: the values inside the level's wrappers."""
    return tree_map(
        lambda t: level.unwrap(t) if isinstance(t, taeda.Tensor) else t, tree
    )


def aux_of(unwrap, tree):
    """What a function returned beside its value, as the caller sees it.

    Raises:
        RuntimeError: something in it is no tensor.
    """

    def shown(t):
        if not isinstance(t, taeda.Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")
        return unwrap(t)

    return tree_map(shown, tree)


def _gradients(outputs, inputs, cotangents, create_graph: bool = False):
    """Gradients within one level; zeros where there is no way."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True)]
    pairs = [(o, c) for o, c in pairs if o.requires_grad]
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
        for t, g in zip(inputs, found, strict=True)
    ]


def places_of(argnums, count: int) -> tuple[int, ...]:
    """The positions that `argnums` names among `count` arguments.

    Raises:
        RuntimeError: no integer or tuple of them, or one that is not there.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}"
        )
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not places:
        raise RuntimeError("argnums must be non-empty")
    for place in places:
        if not isinstance(place, int):
            raise RuntimeError(f"argnum must be int, got: {type(place)} ({place!r})")
        if not -count <= place < count:
            raise RuntimeError(
                f"Got argnum={place}, but only {count} positional inputs"
            )
    found = tuple(place % count for place in places)
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def by_places(func, places: tuple, args: tuple, kwargs: dict):
    """`func` as a function of the arguments at some places alone."""

    def chosen(*values):
        given = list(args)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return func(*given, **kwargs)

    return chosen


def _with_aux(result, has_aux: bool, who: str):
    """(value, aux) of what a function returned."""
    if has_aux and not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{who}: output of function f should be a tuple: (output, aux) if has_aux "
            f"is True, got {type(result).__name__}"
        )
    return result if has_aux else (result, None)


def grad_and_value(func, argnums=0, has_aux: bool = False):
    """A function that returns (gradients, value) of a scalar function.

    Args:
        func: returns a tensor without dims, or (it, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by; tensors
            or nested containers of tensors.
        has_aux: whether func returns a second value, handed on as (value, aux).

    Raises:
        RuntimeError: no such argument; func returns something else.
        ValueError: what is differentiated by is no tensor.

    Example:
        >>> taeda.func.grad_and_value(lambda x: (x * x).sum())(taeda.ones(2))
        (tensor([2., 2.]), tensor(2.))
    """
    who = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def differentiated(*args, **kwargs):
        places = places_of(argnums, len(args))
        chosen, spec = tree_flatten(tuple(args[place] for place in places))
        with grad_level() as level, taeda.enable_grad():
            leaves = [_leaf(level, t) for t in chosen]
            call = by_places(func, places, args, kwargs)
            result = call(*tree_unflatten(leaves, spec))
            value, aux = _with_aux(result, has_aux, who)
            if not isinstance(value, taeda.Tensor):
                raise RuntimeError(
                    f"{who}: Expected f(*args) to return a Tensor, got {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    f"{who}: Expected f(*args) to return a scalar Tensor, got tensor "
                    f"with {value.dim()} dims. Maybe you wanted to use the vjp or "
                    "jacrev APIs instead?"
                )
            if value.is_complex():
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but "
                    f"got {value.dtype}"
                )
            found = _gradients([value], leaves, [taeda.ones_like(value)])
            found = [level.unwrap(g) for g in found]
        gradients = tree_unflatten(found, spec)
        gradients = gradients[0] if isinstance(argnums, int) else gradients
        value = level.unwrap(value)
        if not has_aux:
            return gradients, value
        return gradients, (value, aux_of(level.unwrap, aux))

    return differentiated


def grad(func, argnums=0, has_aux: bool = False):
    """A function that returns the gradient of a scalar function.

    Args:
        func: returns a tensor without dims, or (it, anything) with has_aux.
        argnums: the positional argument, or several, to differentiate by.
        has_aux: whether to return (gradient, aux).

    Raises:
        RuntimeError, ValueError: as `grad_and_value`.

    Example:
        >>> taeda.func.grad(lambda x: (x * x).sum())(taeda.ones(2))
        tensor([2., 2.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def _leaves_of(value, who: str) -> tuple:
    """(tensors, structure) of what a function returned, at least one.

    Raises:
        RuntimeError: it returned nothing, or something else than tensors.
    """
    outputs, spec = tree_flatten(value)
    if all(each is None for each in outputs):
        raise RuntimeError(
            f"{who}: Expected f to be a function that has non-empty output (got "
            f"output = {value!r})"
        )
    _only_tensors(outputs, who)
    return outputs, spec


def _only_tensors(outputs: list, who: str) -> None:
    for output in outputs:
        if not isinstance(output, taeda.Tensor):
            raise RuntimeError(
                f"{who}: expected f(*primals) to return only tensors, got unsupported "
                f"type {type(output)}"
            )


def vjp(func, *primals, has_aux: bool = False):
    """(func(*primals), a function from cotangents to gradients).

    Args:
        func: returns tensors in nested containers, or (them, anything) with has_aux.
        primals: its arguments, tensors in nested containers.
        has_aux: whether to return (value, function, aux).

    Returns:
        The function takes cotangents shaped like the value and returns a tuple of
        gradients, one for each argument.

    Raises:
        RuntimeError: func returns no tensors; cotangents of another structure.

    Example:
        >>> value, product = taeda.func.vjp(taeda.sin, taeda.zeros(2))
        >>> product(taeda.ones(2))
        (tensor([1., 1.]),)
    """
    who = "vjp(f, *primals)"
    inputs, spec = tree_flatten(primals)
    with grad_level() as level, taeda.enable_grad():
        leaves = [_leaf(level, t) for t in inputs]
        result = func(*tree_unflatten(leaves, spec))
        value, aux = _with_aux(result, has_aux, who)
    outputs, out_spec = _leaves_of(value, who)

    def product(cotangents, retain_graph: bool = True, create_graph=None):
        given, given_spec = tree_flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree "
                f"structure of outputs to the function. cotangents: {given_spec}, "
                f"primal output: {out_spec}"
            )
        follow = taeda.is_grad_enabled() if create_graph is None else create_graph
        found = _gradients(outputs, leaves, given, follow)
        return _outside(level, tree_unflatten(found, spec))

    shown = _outside(level, value)
    if not has_aux:
        return shown, product
    return shown, product, aux_of(level.unwrap, aux)


def _checked_tensors(name: str, leaves: list) -> None:
    if not leaves:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected {name} to contain at least one "
            "Tensor."
        )
    for leaf in leaves:
        if not isinstance(leaf, taeda.Tensor):
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected {name} to only contain Tensors, "
                f"got {type(leaf)}"
            )


def jvp(func, primals, tangents, *, strict: bool = False, has_aux: bool = False):
    """(func(*primals), its derivative along the tangents).

    Args:
        func: returns tensors, or (them, anything) with has_aux.
        primals: a tuple of the arguments.
        tangents: a tuple of directions, shaped like the arguments.
        strict: whether an output that does not depend on the arguments is an error.
        has_aux: whether to return (value, derivative, aux).

    Raises:
        RuntimeError: primals and tangents differ in structure or shape; an output
            that is no tensor; with strict, one that depends on no argument.
        ValueError: primals or tangents that are neither floating nor complex.

    Example:
        >>> taeda.func.jvp(taeda.sin, (taeda.zeros(2),), (taeda.ones(2),))
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    if not _C._functorch.fwd_grad_enabled():  # inference mode is around the transform
        from taeda.autograd.forward_ad import _set_fwd_grad_enabled

        with _set_fwd_grad_enabled(True):
            return jvp(func, primals, tangents, strict=strict, has_aux=has_aux)
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should "
            f"be valid to call f(*primals). Got {type(primals)}"
        )
    points, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same "
            "python structure. For example, if primals is a tuple of 3 tensors, "
            f"tangents also must be. Got primals with structure {spec} and tangents "
            f"with structure {other}"
        )
    _checked_tensors("primals", points)
    _checked_tensors("tangents", directions)
    with dual_level() as level:
        duals = [
            level.make_dual(*pair) for pair in zip(points, directions, strict=True)
        ]
        result = func(*tree_unflatten(duals, spec))
        value, aux = _with_aux(result, has_aux, "jvp(f, primals, tangents)")
        outputs, out_spec = _leaves_of(value, "jvp(f, primals, tangents)")
        moved = [_direction(level, output, strict) for output in outputs]
        shown = [level.primal(t) for t in outputs]
        aux = aux_of(level.primal, aux) if has_aux else None
    shown, moved = tree_unflatten(shown, out_spec), tree_unflatten(moved, out_spec)
    return (shown, moved, aux) if has_aux else (shown, moved)


def _direction(level, output, strict: bool):
    """An output's tangent; zeros where it has none."""
    found = level.tangent(output)
    if found is None and strict:
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent "
            "of the inputs. This is not allowed with strict=True."
        )
    return taeda.zeros_like(output) if found is None else found


def linearize(func, *primals):
    """(func(*primals), the linear function that approximates it there).

    Args:
        func: of tensors in nested containers, to tensors; it runs once.
        primals: where it is linearized.

    Returns:
        The function takes tangents shaped like the primals, any number of times.

    Raises:
        RuntimeError: tangents of another structure, shape or dtype than the primals.

    Example:
        >>> value, line = taeda.func.linearize(taeda.sin, taeda.zeros(2))
        >>> line(taeda.ones(2))
        tensor([1., 1.])
    """
    inputs, spec = tree_flatten(primals)
    with grad_level() as level, taeda.enable_grad():
        leaves = [_leaf(level, t) for t in inputs]
        outputs, out_spec = tree_flatten(func(*tree_unflatten(leaves, spec)))
        _only_tensors(outputs, "linearize(f, *primals)")
        # u -> u^T J is linear, and its derivative along a tangent t is J t.
        factors = [level.leaf(taeda.zeros_like(level.unwrap(t))) for t in outputs]
        products = _gradients(outputs, leaves, factors, create_graph=True)
    value = tree_unflatten([level.unwrap(t) for t in outputs], out_spec)

    def line(*tangents):
        directions, other = tree_flatten(tangents)
        if spec != other:
            raise RuntimeError(
                f"Expected the tangents {other} to have the same argspec as the "
                f"primals {spec}"
            )
        for i, (point, direction) in enumerate(zip(inputs, directions, strict=True)):
            _same_form(i, point, direction)
        moved = _gradients(products, factors, directions, taeda.is_grad_enabled())
        return tree_unflatten([level.unwrap(t) for t in moved], out_spec)

    return value, line


def _same_form(index: int, point, direction) -> None:
    for fact in ("shape", "dtype"):
        mine, wanted = getattr(direction, fact), getattr(point, fact)
        if mine != wanted:
            raise RuntimeError(
                f"tangent:{index} with {fact} {mine} in flattened pytree doesn't "
                f"match the {fact} {wanted} of the corresponding primal."
            )
