"""`taeda.ops.higher_order`: operators that take graphs, as nodes call them."""

from __future__ import annotations

import taeda
from taeda._higher_order_ops.cond import cond

__all__ = ["HigherOrderOperator", "operator_of"]


class HigherOrderOperator:
    """An operator whose arguments have functions among them.

    Args:
        function: computes it.
    """

    namespace = "higher_order"

    def __init__(self, function) -> None:
        self.function = function
        self.__name__ = self.__qualname__ = function.__name__
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


_OPERATORS = {"cond": HigherOrderOperator(cond)}


def operator_of(name: str) -> HigherOrderOperator | None:
    """The operator of a name, or None."""
    return _OPERATORS.get(name)
