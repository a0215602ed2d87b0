"""Joining and splitting dimensions."""

from __future__ import annotations

from taeda import Tensor

from .module import Module
from .utils import described

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one.

    Example:
        >>> tuple(taeda.nn.Flatten()(taeda.ones(2, 3, 4)).shape)
        (2, 12)
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return described(self, "start_dim end_dim")


class Unflatten(Module):
    """Splits a dimension into several.

    Args:
        dim: the dimension.
        unflattened_size: the sizes it becomes.

    Raises:
        TypeError: the sizes are no tuple or list of integers.

    Example:
        >>> tuple(taeda.nn.Unflatten(1, (3, 4))(taeda.ones(2, 12)).shape)
        (2, 3, 4)
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for at, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {at}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return described(self, "dim unflattened_size")
