"""Small programs of large ones: what is left of a graph that still goes wrong.

Delta debugging (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing
Input, 2002) over the calls of a graph: a stretch of calls is left out, and what the
rest needs of it becomes an input with the value that it had.
"""

from __future__ import annotations

import taeda
from taeda import fx

__all__ = ["copies", "reduce_graph"]


class _Values(fx.Interpreter):
    """Runs a graph and keeps what each node gave, as it was then."""

    def __init__(self, gm) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.extra_traceback, self.found = False, {}

    def run_node(self, n):
        value = super().run_node(n)
        self.found[n] = copies([value])[0] if taeda.is_tensor(value) else value
        return value


def copies(inputs) -> list:
    """The same inputs for another run: tensors are leaves with memory of their own."""
    return [
        x.detach().clone().requires_grad_(x.requires_grad) if taeda.is_tensor(x) else x
        for x in inputs
    ]


def _calls(gm) -> list:
    kinds = ("call_function", "call_method", "call_module")
    return [node for node in gm.graph.nodes if node.op in kinds]


def _returned(gm) -> list:
    """The nodes whose values a graph returns."""
    return list(gm.graph.output_node().all_input_nodes)


def _part(gm, values, kept, returned):
    """The graph of some calls, and its inputs; None where that is no graph of tensors.

    Args:
        values: what each node gives, by node.
        kept: calls to keep.
        returned: nodes whose values it returns.
    """
    graph, made, inputs = fx.Graph(), {}, []
    kept = set(kept)
    wanted, todo = set(), list(returned)
    while todo:
        node = todo.pop()
        if node not in wanted:
            wanted.add(node)
            todo += node.all_input_nodes if node in kept else ()
    for node in gm.graph.nodes:
        if node not in wanted:
            continue
        if node in kept or node.op == "get_attr":
            continue
        if not taeda.is_tensor(values[node]) and node.op != "placeholder":
            return None
        made[node] = graph.placeholder(node.name)
        inputs.append(values[node])
    for node in gm.graph.nodes:
        if node in wanted and node not in made:
            made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[node] for node in returned))
    return fx.GraphModule(gm, graph), inputs


class _Search:
    """The smallest graph so far, and the question that it is held to."""

    def __init__(self, gm, inputs, fails) -> None:
        self.fails = fails
        self._take(gm, inputs)

    def _take(self, gm, inputs) -> None:
        self.gm, self.inputs = gm, inputs
        runs = _Values(gm)
        runs.run(*copies(inputs))
        self.values = runs.found

    def _try(self, kept, returned) -> bool:
        """Takes a part, if that fails as well."""
        part = returned and _part(self.gm, self.values, kept, returned)
        if not part or not self.fails(part[0], copies(part[1])):
            return False
        self._take(*part)
        return True

    def run(self):
        """Until nothing can be left out."""
        while self._fewer_results() or self._earlier_end() or self._fewer_calls():
            pass
        return self.gm, self.inputs

    def _fewer_results(self) -> bool:
        returned = _returned(self.gm)
        return len(returned) > 1 and any(
            self._try(_calls(self.gm), [node]) for node in returned
        )

    def _earlier_end(self) -> bool:
        """The graph ends at a call before its last one: far before it, if it may."""
        calls = _calls(self.gm)
        drop = len(calls) // 2
        while drop:
            if self._try(calls[:-drop], calls[-drop - 1 : -drop]):
                return True
            drop //= 2
        return False

    def _fewer_calls(self) -> bool:
        """Without a stretch of calls: long ones first."""
        calls, returned = _calls(self.gm), _returned(self.gm)
        size = len(calls) // 2
        while size:
            for start in range(0, len(calls), size):
                left_out = calls[start : start + size]
                kept = calls[:start] + calls[start + size :]
                if not set(left_out) & set(returned) and self._try(kept, returned):
                    return True
            size //= 2
        return False


def reduce_graph(gm, inputs, fails):
    """A graph of few calls that still fails, and its inputs.

    Args:
        gm: a GraphModule of which `fails(gm, inputs)` is true.
        inputs: tensors, and other values where the graph takes them.
        fails: asked of each smaller graph, with inputs that it may change.

    Raises:
        RuntimeError: `gm` itself does not fail.
    """
    if not fails(gm, copies(inputs)):
        raise RuntimeError("Input graph did not fail the tester")
    return _Search(gm, list(inputs), fails).run()
