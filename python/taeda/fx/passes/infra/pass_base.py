"""A pass as a class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module that a pass gives, and whether it changed anything."""

    graph_module: Any
    modified: bool


class PassBase(ABC):
    """A pass: `requires` is called before `call`, `ensures` after it."""

    def __call__(self, graph_module) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module) -> PassResult | None:
        """Changes the module; None counts as: nothing changed."""

    def requires(self, graph_module) -> None:  # noqa: B027
        """Raises where the module is not what the pass needs."""

    def ensures(self, graph_module) -> None:  # noqa: B027
        """Raises where the pass did not keep its promise."""
