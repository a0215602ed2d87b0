"""A function without writes and, if wanted, without views."""

from __future__ import annotations

import functools

import taeda
from taeda._functorch.levels import functional_level
from taeda.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["functionalize"]

_CHOICES = {"mutations": True, "mutations_and_views": False}


def functionalize(func, *, remove: str = "mutations"):
    """A function that computes the same as `func` by operators that write nothing.

    Operators in place and with `out=` become their functional forms; what they change
    is put back into the tensor that they wrote to a view of, and other views of it are
    made anew when they are used. At the end, arguments that the function changed are
    written to (by `copy_`), so that a caller sees what `func` would have done; results
    that are arguments, or views of them, are so outside too. What outer transforms and
    modes of Python see is the program without writes.

    A tensor that the function takes from elsewhere stays what it is: writing to it by
    values from outside does write, writing to it by values of the function is an error.

    Args:
        func: takes and returns tensors, or nested containers of them.
        remove: "mutations", or "mutations_and_views", by which no two values share
            memory: a copy takes the place of each view (the view and a `clone` of it).

    Returns:
        The function. An argument that has holes, or shares memory with another one,
        is a view by `as_strided` inside, unless it requires a gradient.

    Raises:
        RuntimeError: another `remove`; a write by values of the function to a tensor
            from elsewhere; resizing a view to more elements than its base has.
        NotImplementedError: a write to a view that cannot be put back into its base.

    Example:
        >>> def f(x):
        ...     y = x.clone()
        ...     y[0].add_(1)
        ...     return y
        >>> taeda.func.functionalize(f)(taeda.zeros(2))
        tensor([1., 0.])
    """
    if remove not in _CHOICES:
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for "
            f"remove={remove}. Valid options are:\n"
            "     remove='mutations': operators that write become ones that do not.\n"
            "     remove='mutations_and_views': views become copies besides."
        )

    @functools.wraps(func)
    def functionalized(*args, **kwargs):
        leaves, spec = tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, taeda.Tensor)]
        level = functional_level(_CHOICES[remove])
        with level:
            inside = level.wrap_inputs([leaves[i] for i in places])
            for i, wrapper in zip(places, inside, strict=True):
                leaves[i] = wrapper
            inner_args, inner_kwargs = tree_unflatten(leaves, spec)
            result = func(*inner_args, **inner_kwargs)
        level.write_back()
        return tree_map(
            lambda t: level.output(t) if isinstance(t, taeda.Tensor) else t, result
        )

    return functionalized
