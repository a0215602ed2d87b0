"""One of two functions, by a value."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops._recorder import recorder
from taeda.utils._pytree import tree_flatten

__all__ = ["cond"]


def cond(pred, true_fn, false_fn, operands: tuple | list = ()):
    """What `true_fn(*operands)` or `false_fn(*operands)` returns.

    In a captured graph both functions are part of the graph, and one runs in each call
    of it: the value may change without another capture. Both then return tensors in
    the same structure, with the same shapes and dtypes.

    Args:
        pred: a bool, a number or a tensor of one element; in a graph, also a condition
            on sizes that are symbols.
        true_fn, false_fn: functions of the operands.
        operands: a tuple or list whose leaves are tensors or integers.

    Raises:
        RuntimeError: pred has several elements or is something else; a branch cannot
            be called; operands are something else.

    Example:
        >>> x = taeda.zeros(2)
        >>> taeda.cond(x.sum() > 0, taeda.sin, taeda.cos, (x,))
        tensor([1., 1.])
    """
    check(pred, true_fn, false_fn, operands)
    differs = isinstance(pred, (taeda.Tensor, taeda.SymBool))
    record = recorder() if differs else None
    if record is not None:
        return record("cond", pred, true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)


def check(pred, true_fn, false_fn, operands) -> None:
    """Raise RuntimeError for arguments that `cond` does not take."""
    decides = "bool or tensor"
    fits = isinstance(pred, (bool, int, float, taeda.SymBool))
    if isinstance(pred, taeda.Tensor):
        decides, fits = "bool or single-element tensor", pred.numel() == 1
    if not fits:
        raise RuntimeError(f"cond: Expected pred to be {decides}, but got {pred}.")
    if not all(map(callable, (true_fn, false_fn))):
        raise RuntimeError("cond: Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not are_values(operands):
        raise RuntimeError(
            "cond: Expect operands to be a tuple of possibly nested dict/list/tuple "
            f"that only consists of tensor leaves, but got {operands}."
        )


def are_values(tree) -> bool:
    """Whether the leaves of a tree are tensors and integers."""
    return all(isinstance(leaf, (int, taeda.Tensor)) for leaf in tree_flatten(tree)[0])
