"""`taeda.ops.higher_order`: operators that take graphs, as nodes call them."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops.associative_scan import associative_scan
from taeda._higher_order_ops.cond import cond
from taeda._higher_order_ops.map import map as map_rows
from taeda._higher_order_ops.scan import scan
from taeda._higher_order_ops.while_loop import while_loop

__all__ = ["HigherOrderOperator", "operator_of"]


class HigherOrderOperator:
    """An operator whose arguments have functions among them.

    Args:
        function: computes it.
        name: the operator's.
    """

    namespace = "higher_order"

    def __init__(self, function, name: str) -> None:
        self.function = function
        self.__name__ = self.__qualname__ = name
        self.__doc__ = function.__doc__
        self.__module__ = f"{taeda.__name__}._ops.higher_order"

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def name(self) -> str:
        """The name."""
        return self.__name__

    def __reduce__(self):
        return operator_of, (self.__name__,)

    def __repr__(self) -> str:
        return self.__name__


# The operators with flat trees, and with what their functions read besides as arguments
# of their own, so that these may be graphs.


def _cond(pred, true_fn, false_fn, operands=()):
    """`cond` on what a node holds: numbers among the operands are the branches' own."""
    tensors = [isinstance(x, taeda.Tensor) for x in operands]

    def whole(function):
        def call(*given):
            left = iter(given)
            pairs = zip(operands, tensors, strict=True)
            return function(*(next(left) if is_one else x for x, is_one in pairs))

        return call if callable(function) else function

    given = tuple(x for x, is_one in zip(operands, tensors, strict=True) if is_one)
    return cond(pred, whole(true_fn), whole(false_fn), given)


def _wrap(func, *args, **kwargs):
    """What func(*args, **kwargs) returns; in captured graphs it is a graph.

    Example:
        >>> taeda.ops.higher_order.wrap(lambda x: x * 2, taeda.ones(2))
        tensor([2., 2.])
    """
    return func(*args, **kwargs)


def _while_loop(cond_fn, body_fn, carried_inputs, additional_inputs=()) -> tuple:
    """`while_loop` on what a node holds."""
    rest = tuple(additional_inputs)
    return while_loop(
        lambda *values: cond_fn(*values, *rest),
        lambda *values: tuple(body_fn(*values, *rest)),
        tuple(carried_inputs),
    )


def _scan(combine_fn, init, xs, additional_inputs=()) -> tuple:
    """`scan` on what a node holds, along first dims."""
    count = len(init)

    def step(carry, item):
        found = combine_fn(*carry, *item, *additional_inputs)
        return tuple(found[:count]), tuple(found[count:])

    carry, rows = scan(step, tuple(init), tuple(xs))
    return (*carry, *rows)


def _map_impl(f, xs, pos_args=()) -> tuple:
    """`map` on what a node holds."""
    return map_rows(lambda item, *args: tuple(f(*item, *args)), tuple(xs), *pos_args)


def _associative_scan(combine_fn, xs, additional_inputs=()) -> tuple:
    """`associative_scan` on what a node holds, along first dims."""

    def combine(a, b):
        return tuple(combine_fn(*a, *b, *additional_inputs))

    return associative_scan(combine, tuple(xs), 0, combine_mode="generic")


_OPERATORS = {
    "associative_scan": HigherOrderOperator(_associative_scan, "associative_scan"),
    "cond": HigherOrderOperator(_cond, "cond"),
    "map_impl": HigherOrderOperator(_map_impl, "map_impl"),
    "scan": HigherOrderOperator(_scan, "scan"),
    "while_loop": HigherOrderOperator(_while_loop, "while_loop"),
    "wrap": HigherOrderOperator(_wrap, "wrap"),
}


def operator_of(name: str) -> HigherOrderOperator | None:
    """The operator of a name, or None."""
    return _OPERATORS.get(name)
