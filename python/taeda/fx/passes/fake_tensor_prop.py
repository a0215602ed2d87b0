"""Notes fake values on the nodes of a graph: shapes without computing anything."""

from __future__ import annotations

import taeda
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors; `meta["val"]` gets each node's value.

    Args:
        module: the GraphModule.
        mode: of the fake tensors; by default a new one.

    Example:
        >>> gm = taeda.fx.symbolic_trace(lambda x: x @ x)
        >>> result = FakeTensorProp(gm).propagate(taeda.ones(4, 4))
        >>> gm.graph.output_node().args[0].meta["val"].shape
        taeda.Size([4, 4])
    """

    def __init__(self, module, mode=None) -> None:
        super().__init__(module)
        if mode is None:
            from taeda._subclasses import FakeTensorMode

            mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._mode = mode

    def run_node(self, n):
        """The value of a node, noted on it."""
        result = super().run_node(n)
        found = False

        def keep(value):
            nonlocal found
            if isinstance(value, (taeda.Tensor, taeda.SymInt, int, float)):
                found = found or not isinstance(value, (int, float, bool))
                return value
            return None

        meta = map_aggregate(result, keep)
        if found:
            n.meta["val"] = meta
        return result

    def fetch_attr(self, target: str):
        """What the module has at a path, as a fake tensor."""
        value = super().fetch_attr(target)
        return self._fake(value)

    def _fake(self, value):
        return (
            self._mode.from_tensor(value) if isinstance(value, taeda.Tensor) else value
        )

    def propagate(self, *args):
        """Runs the graph on fakes of these inputs."""
        return self.propagate_dont_convert_inputs(*map(self._fake, args))

    def propagate_dont_convert_inputs(self, *args):
        """Runs the graph on inputs that are fake already."""
        with self._mode:
            return super().run(*args)
