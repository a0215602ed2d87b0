"""Types of tensors by their sizes, some of which are left open.

After gradual typing (Siek and Taha, 2006): `Dyn` is the type of which nothing is known.
"""

from __future__ import annotations

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _Open:
    """The type of `Dyn`."""

    __name__ = "Dyn"

    def __eq__(self, other) -> bool:
        return isinstance(other, _Open)

    def __hash__(self) -> int:
        return hash(_Open)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _Open()


class TensorType:
    """Tensors of these sizes; a size may be `Dyn`.

    Args:
        dim: the sizes.

    Example:
        >>> from taeda.fx.tensor_type import Dyn, TensorType
        >>> TensorType((2, Dyn))
        TensorType[(2, Dyn)]
    """

    def __init__(self, dim) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    def __eq__(self, other) -> bool:
        if not isinstance(other, TensorType):
            return False
        return list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    @staticmethod
    def __class_getitem__(sizes) -> TensorType:
        return TensorType(sizes if isinstance(sizes, tuple) else (sizes,))


def _all(relation, first, second) -> bool:
    """Whether two types of equally many sizes are related size by size."""
    pairs = (first.__args__, second.__args__)
    return len(pairs[0]) == len(pairs[1]) and all(map(relation, *pairs))


def is_consistent(t1, t2) -> bool:
    """Whether something may be of both types.

    Example:
        >>> from taeda.fx.tensor_type import Dyn, TensorType, is_consistent
        >>> is_consistent(TensorType((1, Dyn)), TensorType((1, 2)))
        True
    """
    if t1 == t2 or Dyn in (t1, t2):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return _all(is_consistent, t1, t2)
    return False


def is_more_precise(t1, t2) -> bool:
    """Whether the first says as much as the second, or more.

    Example:
        >>> from taeda.fx.tensor_type import Dyn, TensorType, is_more_precise
        >>> is_more_precise(TensorType((1, 2)), TensorType((1, Dyn)))
        True
    """
    if t1 == t2 or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return _all(is_more_precise, t1, t2)
    return False
