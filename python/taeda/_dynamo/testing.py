"""Backends that count and keep what they are given."""

from __future__ import annotations

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs"]

_CALLS = ("call_function", "call_method", "call_module")


class CompileCounterWithBackend:
    """A backend that counts graphs and their calls, and gives them to another.

    Args:
        backend: name of the other backend.

    Attributes:
        frame_count: number of graphs.
        op_count: number of their calls.
        graphs: the GraphModules.

    Example:
        >>> counter = taeda._dynamo.testing.CompileCounterWithBackend("eager")
        >>> _ = taeda.compile(lambda x: x * 2 + 1, backend=counter)(taeda.ones(2))
        >>> counter.frame_count, counter.op_count
        (1, 2)
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm, example_inputs):
        from taeda.compiler._backends import lookup_backend

        self.frame_count += 1
        self.op_count += sum(node.op in _CALLS for node in gm.graph.nodes)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)

    def clear(self) -> None:
        """Begin to count anew."""
        self.frame_count = self.op_count = 0
        self.graphs = []


class CompileCounter(CompileCounterWithBackend):
    """A backend that counts graphs and their calls, and runs them as captured."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs:
    """A backend that keeps graphs as `graphs` and runs them as captured."""

    def __init__(self) -> None:
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward
