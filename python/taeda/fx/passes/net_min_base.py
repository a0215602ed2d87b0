"""Finds the nodes for which two ways to run a graph do not agree."""

from __future__ import annotations

from dataclasses import dataclass

import taeda
from taeda.fx.graph_module import GraphModule
from taeda.fx.interpreter import Interpreter
from taeda.fx.node import Node

from .shape_prop import ShapeProp
from .tools_common import CALLABLE_NODE_OPS
from .utils.fuser_utils import fuse_as_graphmodule

__all__ = [
    "FxNetMinimizerBadModuleError",
    "FxNetMinimizerResultMismatchError",
    "FxNetMinimizerRunFuncError",
]


class FxNetMinimizerBadModuleError(Exception):
    """No module can be made of the nodes."""


class FxNetMinimizerRunFuncError(Exception):
    """One of the two ways raised an error."""


class FxNetMinimizerResultMismatchError(Exception):
    """The two ways gave different results."""


@dataclass
class _MinimizerSettingBase:
    """How a minimizer works.

    Attributes:
        accumulate_error: the second way gets its own earlier results as inputs.
        traverse_method: "sequential" (node by node), "binary" (halves), "accumulate"
            (from the start to each node), "skip" (what lies between given nodes) or
            "defined" (all at once).
        find_all: go on after the first culprit.
        return_intermediate: pieces return the values of all their nodes.
    """

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False
    return_intermediate: bool = False

    def __str__(self) -> str:
        lines = [f"\t{name}: {value}" for name, value in vars(self).items()]
        return "\n".join(["FX Minimizer Settings:", *lines, ""])


class _Values(Interpreter):
    """Keeps the value of every node."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)


class _MinimizerBase:
    """Runs pieces of a module in two ways, `run_a` and `run_b` of a subclass.

    Args:
        module: the GraphModule.
        sample_input: its inputs.
        compare_fn: (result of a, result of b, names of nodes) -> (a figure, whether
            they agree).
        settings: see `_MinimizerSettingBase`.
        module_exporter: called with (inputs, module, name) for a culprit.
    """

    def __init__(
        self, module, sample_input, compare_fn, settings, module_exporter=None
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError(f"Expected GraphModule, got {type(module)}")
        inputs = module.graph.find_nodes(op="placeholder")
        if len(inputs) != len(sample_input):
            raise AssertionError(
                f"Placeholder count ({len(inputs)}) does not match sample_input count "
                f"({len(sample_input)})"
            )
        self.module, self.sample_input = module, sample_input
        self.compare_fn, self.settings = compare_fn, settings
        self.module_exporter = module_exporter
        self.results: dict = {}
        self.reports: list[list[str]] = []
        self.run_shape_prop()
        values = _Values(module)
        with taeda.no_grad():
            values.run(*sample_input)
        self._values = values.env
        self.b_outputs: dict[Node, object] = {}

    def run_shape_prop(self) -> None:
        """Notes shapes on the nodes."""
        ShapeProp(self.module).propagate(*self.sample_input)

    def run_a(self, mod: GraphModule, inputs, report_idx: int = -1):
        """The result of a piece in the first way."""
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs, report_idx: int = -1):
        """The result of a piece in the second way."""
        raise RuntimeError("run_b() is not implemented.")

    # Pieces ----------------------------------------------------------------------

    def _between(self, start: str | None, end: str | None) -> list[Node]:
        """The calls from one node to another, both included."""
        nodes: list[Node] = []
        begun = start is None
        for node in self.module.graph.nodes:
            begun = begun or node.name == start
            if begun and node.op in CALLABLE_NODE_OPS:
                nodes.append(node)
            if node.name == end:
                break
        return nodes

    def _check(self, nodes: list[Node]) -> None:
        """Runs some nodes in both ways; raises where they do not agree."""
        report = [f"Run and compare {', '.join(n.name for n in nodes)}"]
        self.reports.append(report)
        try:
            piece, inputs, outputs = fuse_as_graphmodule(self.module, nodes, "minimize")
        except AssertionError as error:
            raise FxNetMinimizerBadModuleError(
                f"no module of {nodes}: {error}"
            ) from error
        if self.settings.return_intermediate:
            outputs = tuple(nodes)
            named = {n.name: n for n in piece.graph.nodes}
            shown = tuple(named[n.name] for n in nodes)
            piece.graph.output_node().args = (shown[0] if len(shown) == 1 else shown,)
            piece.recompile()
        given = tuple(self._values[n] for n in inputs)
        own = given
        if self.settings.accumulate_error:
            own = tuple(self.b_outputs.get(n, self._values[n]) for n in inputs)
        names = [n.name for n in outputs]
        try:
            with taeda.no_grad():
                first, second = self.run_a(piece, given), self.run_b(piece, own)
        except Exception as error:
            report.append(f"Exception raised when running {names}: {error}")
            raise FxNetMinimizerRunFuncError(report[-1]) from error
        several = second if len(outputs) > 1 else (second,)
        self.b_outputs.update(zip(outputs, several, strict=False))
        figure, same = self.compare_fn(first, second, names)
        self.results[tuple(names)] = figure
        report.append(f"Numerical accuracy = {figure}")
        if not same:
            report.append(f"Result mismatch for {names}")
            if self.module_exporter:
                self.module_exporter(given, piece, f"{names[0]}_a")
                self.module_exporter(own, piece, f"{names[0]}_b")
            raise FxNetMinimizerResultMismatchError(report[-1])

    def _fails(self, nodes: list[Node]) -> bool:
        try:
            self._check(nodes)
        except (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError):
            return True
        return False

    # Ways to go through the nodes ------------------------------------------------

    def _culprits(self, pieces) -> set[Node]:
        """Of (nodes run together, nodes to blame) those to blame."""
        found: set[Node] = set()
        for run, blamed in pieces:
            if run and self._fails(run):
                found.update(blamed)
                if not self.settings.find_all:
                    break
        return found

    def _halves(self, nodes: list[Node]) -> set[Node]:
        if not nodes or not self._fails(nodes):
            return set()
        if len(nodes) == 1:
            return set(nodes)
        middle = len(nodes) // 2
        found = self._halves(nodes[:middle])
        if not found or self.settings.find_all:
            found |= self._halves(nodes[middle:])
        return found or set(nodes)

    def minimize(
        self,
        start: str | None = None,
        end: str | None = None,
        skip_nodes: list[str] | None = None,
        find_last_node: bool | None = None,
    ) -> set[Node]:
        """The nodes for which the two ways do not agree.

        Args:
            start, end: names of the first and the last node that are looked at.
            skip_nodes: names of nodes that are left out, for the method "skip".
            find_last_node: not used.

        Raises:
            RuntimeError: the settings name no known method.
        """
        nodes = self._between(start, end)
        method = self.settings.traverse_method
        if method == "binary":
            return self._halves(nodes)
        if method == "skip" and skip_nodes is None:
            raise RuntimeError(
                "'skip_nodes' can't be None when 'traverse_method' is 'skip'."
            )
        pieces = {
            "sequential": lambda: (([n], [n]) for n in nodes),
            "accumulate": lambda: ((nodes[: i + 1], [n]) for i, n in enumerate(nodes)),
            "skip": lambda: ((run, run) for run in _without(nodes, skip_nodes)),
            "defined": lambda: [(nodes, nodes)],
        }
        if method not in pieces:
            raise RuntimeError(f"Unknown traverse method {method}!")
        return self._culprits(pieces[method]())

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs one piece in both ways and prints where they do not agree."""
        try:
            self._check(self._between(start, end))
        except (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError) as error:
            print(error)

    def print_report(self, report: list[str]) -> None:
        """Prints what one comparison told."""
        print("\n . ".join(report))

    def print_reports(self) -> None:
        """Prints what all comparisons told."""
        for report in self.reports:
            self.print_report(report)


def _without(nodes: list[Node], names: list[str]) -> list[list[Node]]:
    runs: list[list[Node]] = [[]]
    for node in nodes:
        if node.name in names:
            runs.append([])
        else:
            runs[-1].append(node)
    return runs
