"""`cond` in programs that are exported: both branches are graphs."""

from __future__ import annotations

import re

import taeda
from taeda import nn
from taeda.fx.graph_module import GraphModule
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from ._tracer import ExportMode, ExportTracer

__all__ = ["record_cond"]


class _BranchTracer(ExportTracer):
    """Records a branch; what it uses from outside becomes an input of its own.

    Args:
        outer: records the program around it.
    """

    def __init__(self, outer) -> None:
        super().__init__(outer.paths, outer.attributes)
        self.outer, self.fake_mode, self.root = outer, outer.fake_mode, nn.Module()
        self.module_stack = outer.module_stack
        self.inputs: dict = {}  # node outside -> placeholder here

    def take(self, tensor) -> None:
        """Makes a tensor of the program outside an input."""
        node = self.outer.create_arg(tensor)
        if node not in self.inputs:
            place = next(
                (n for n in self.graph.nodes if n.op != "placeholder"), self.graph._root
            )
            with self.graph.inserting_before(place):
                self.inputs[node] = self.graph.placeholder(node.name)
        self.track(tensor, Proxy(self.inputs[node], self))
        self.inputs[node].meta = dict(node.meta)

    lift = take

    def create_arg(self, a):
        """As always; for a size the tensor outside that has it is taken."""
        if isinstance(a, (taeda.SymInt, taeda.SymFloat, taeda.SymBool)):
            outside = self.outer.sizes.sources
            for name in set(re.findall(r"\b[su]\d+\b", repr(a))) & set(outside):
                owner = outside[name][0].node
                if name not in self.sizes.sources:
                    self.take(
                        next(t for t, p in self.outer.values() if p.node is owner)
                    )
        return super().create_arg(a)


def _record(mode, function, operands):
    """The tracer of a branch, and its results."""
    tracer = _BranchTracer(mode.tracer)
    for tensor in pytree.tree_leaves(operands):
        tracer.take(tensor)
    inner = ExportMode(tracer, "symbolic")
    inner.env = mode.env
    fake_mode = tracer.fake_mode
    before, mode.enabled = fake_mode.on_item, False
    fake_mode.on_item = inner.learn_item
    try:
        with inner:
            result = function(*operands)
    finally:
        mode.enabled, fake_mode.on_item = True, before
    leaves, spec = pytree.tree_flatten(result)
    if not all(isinstance(t, taeda.Tensor) or type(t) is int for t in leaves):
        raise RuntimeError(
            f"cond: a branch must return tensors or constant ints, got {result}"
        )
    tracer.graph.output(tuple(tracer.create_arg(t) for t in leaves))
    return tracer, leaves, spec


def _in_order(tracer, nodes: list) -> GraphModule:
    """The branch's graph with an input for each of these nodes outside."""
    last = None
    for node in nodes:
        if node not in tracer.inputs:
            first = next(iter(tracer.graph.nodes))
            with tracer.graph.inserting_before(first):
                tracer.inputs[node] = tracer.graph.placeholder(node.name)
            tracer.inputs[node].meta = dict(node.meta)
        place = tracer.inputs[node]
        if last is None:
            next(iter(tracer.graph.nodes)).prepend(place)
        else:
            last.append(place)
        last = place
    return GraphModule(tracer.root, tracer.graph)


def _like(t) -> tuple | type:
    return int if type(t) is int else (tuple(map(str, t.shape)), t.dtype)


def _results(mode, first, second, proxy) -> list:
    """What the program goes on with, from what both branches gave.

    An int is itself where both gave the same one, else a symbol between the two.
    """
    found = []
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if not isinstance(a, int):
            found.append(a.view_as(a))  # an operand that was returned has to be told
        elif a == b:
            found.append(a)
        else:
            number = mode.env.create_unbacked_symint(size=False)
            mode.tracer.track(number, proxy[i])
            taeda._check(number >= min(a, b))
            taeda._check(number <= max(a, b))
            found.append(number)
    return found


def record_cond(mode, pred, true_fn, false_fn, operands, record=_record):
    """Records `cond` as one node with the graphs of both branches.

    Args:
        mode: records the program.
        record: (mode, branch, operands) -> the branch's tracer, results and structure.

    Raises:
        RuntimeError: the branches give unlike results, or something else than tensors
            and ints.
    """
    yes, first, spec = record(mode, true_fn, tuple(operands))
    no, second, other = record(mode, false_fn, tuple(operands))
    if spec != other or [*map(_like, first)] != [*map(_like, second)]:
        raise RuntimeError(
            f"cond: branches must return the same shapes and dtypes, got "
            f"{[*map(_like, first)]} and {[*map(_like, second)]}"
        )
    tracer = mode.tracer
    nodes = list(dict.fromkeys([*yes.inputs, *no.inputs]))
    count = sum(n.startswith("true_graph_") for n in tracer.root._modules)
    graphs = []
    for name, branch in (("true", yes), ("false", no)):
        path = f"{name}_graph_{count}"
        setattr(tracer.root, path, _in_order(branch, nodes))
        graphs.append(tracer.create_node("get_attr", path, (), {}))
    args = (tracer.create_arg(pred), *graphs, tuple(nodes))
    target = taeda.ops.higher_order.cond
    node = tracer.create_node("call_function", target, args, {}, "cond")
    proxy = Proxy(node, tracer)
    mode.enabled = False
    try:
        results = _results(mode, first, second, proxy)
    finally:
        mode.enabled = True
    tracer.track(tuple(results), proxy)
    return pytree.tree_unflatten(results, spec)
