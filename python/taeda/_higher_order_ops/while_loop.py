"""A loop whose end a tensor decides."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops._recorder import recorder
from taeda.utils._pytree import tree_flatten

__all__ = ["while_loop"]


def while_loop(cond_fn, body_fn, carried_inputs):
    """Replaces values by what `body_fn(*values)` returns while cond_fn(*values) holds.

    In a captured graph both functions are part of the graph and the number of turns is
    that of each call of it.

    Args:
        cond_fn: gives a bool or a boolean tensor of one element.
        body_fn: gives a tuple like the values: same structure, shapes and dtypes.
        carried_inputs: a tuple or list whose leaves are tensors or integers.

    Returns:
        The values at the end, as a tuple.

    Raises:
        RuntimeError: what is given cannot be called or is no tuple; cond_fn or body_fn
            return something else.

    Example:
        >>> i, x = taeda.tensor(0), taeda.ones(2)
        >>> taeda.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))
        (tensor(3), tensor([8., 8.]))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("while_loop: Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            "while_loop: Expect carried_inputs to be a tuple of possibly nested "
            "dict/list/tuple that only consists of tensor or int leaves, but got "
            f"{carried_inputs}."
        )
    values = tuple(carried_inputs)
    record = recorder()
    if record is not None:
        found = record("while_loop", cond_fn, body_fn, values)
        if found is not NotImplemented:
            return found
    while _holds(cond_fn(*values)):
        values = checked(body_fn(*values), values)
    return values


def _holds(pred) -> bool:
    single = isinstance(pred, taeda.Tensor) and pred.numel() == 1
    if not (isinstance(pred, bool) or single and pred.dtype == taeda.bool):
        raise RuntimeError(
            "while_loop: cond_fn must return a boolean scalar tensor or a boolean but "
            f"got {pred}"
        )
    return bool(pred)


def checked(found, values: tuple) -> tuple:
    """What the body returned, if it may take the place of the values."""
    if not isinstance(found, tuple):
        raise RuntimeError(
            f"while_loop: body_fn should return a tuple but got {type(found)}"
        )
    if tree_flatten(found)[1] != tree_flatten(values)[1]:
        raise RuntimeError(
            "while_loop: body_fn should return the same number of elements as "
            f"carried_inputs: expected {len(values)}, got {len(found)}"
        )
    return found
