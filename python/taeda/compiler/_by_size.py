"""Graphs over symbols as graphs over numbers: one for each set of numbers."""

from __future__ import annotations

from operator import itemgetter

from taeda import Tensor
from taeda._logging import artifact_log

from ._events import warn
from ._graphs import graph_module

__all__ = ["BySize"]

# Sets of numbers that are compiled; the graph runs as it was captured for others.
LIMIT = 16


def _taker(places):
    """A function from a tuple to the tuple of its items at these places."""
    places = list(places)
    first = places[0] if places else 0
    stretch = slice(first, first + len(places))
    if places == list(range(stretch.start, stretch.stop)):
        return itemgetter(stretch)
    return itemgetter(*places)  # several places, so that it makes a tuple


class BySize:
    """A captured graph, some of whose inputs are numbers.

    Threads may share one: a set of numbers that two meet at once is compiled twice, and
    either is right.

    Args:
        graph: nodes, outputs, inputs and sizes as capture tells them.
        compile_function: gets a function of tensors and its first arguments.
    """

    def __init__(self, graph, compile_function) -> None:
        module, _ = graph_module(*graph)
        self._forward, self._tensors = module.forward, len(graph[1])
        self._compile, self._made = compile_function, {}
        inputs = graph[2]
        self._tensors_of = _taker(i for i, x in enumerate(inputs) if isinstance(x, int))
        self._numbers_of = _taker(
            i for i, x in enumerate(inputs) if not isinstance(x, int)
        )
        self._told = False

    def __call__(self, *given):
        numbers = self._numbers_of(given)
        tensors = self._tensors_of(given)
        made = self._made.get(numbers)
        if made is None:
            if len(self._made) >= LIMIT:
                self._tell_limit()
                return self._forward(*given)
            made = self._made[numbers] = self._specialize(given, tensors)
        function, sizes = made
        if function is None:
            return self._forward(*given)
        results = function(*tensors)
        return (*results, *sizes) if sizes else results

    def _tell_limit(self) -> None:
        if not self._told:
            text = (
                f"compile: a graph is compiled for {LIMIT} sets of numbers; for others "
                "it runs as it was captured, call by call"
            )
            artifact_log("perf_hints", text)
            warn("%s", text)
        self._told = True

    def _specialize(self, given, tensors):
        """The graph with these numbers, and what it returns besides tensors.

        None in place of a graph that cannot be compiled.
        """
        places = [i for i, x in enumerate(given) if isinstance(x, Tensor)]
        fixed = [None if isinstance(x, Tensor) else x for x in given]
        sizes = []

        def run(*values):
            arguments = list(fixed)
            for place, value in zip(places, values, strict=True):
                arguments[place] = value
            results = self._forward(*arguments)
            sizes[:] = results[self._tensors :]
            return results[: self._tensors]

        function = self._compile(run, tensors)
        if not function.prepare(*tensors):
            return None, ()
        return function, tuple(sizes)
