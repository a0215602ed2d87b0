"""Functions that operators of control flow take, as graphs of their own."""

from __future__ import annotations

import re

import taeda
from taeda.fx.graph_module import GraphModule
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from .proxy_tensor import PythonKeyTracer, py_sym_types

__all__ = ["BranchInputs", "add_graph", "in_order", "record"]


class BranchInputs:
    """What a tracer of a branch does besides; `outer` records the program around it.

    Attributes:
        inputs: node outside -> placeholder here.
        own: placeholders of what the operator itself hands to the function.
    """

    def begin(self, outer) -> None:
        """Sets what there is before the branch runs."""
        self.outer, self.inputs, self.own = outer, {}, []

    def knows(self, tensor) -> bool:
        """Whether this trace, or one around it, has seen a tensor being made."""
        return id(tensor) in self.known or self.outer.knows(tensor)

    def take(self, tensor) -> None:
        """Makes a tensor of the program outside an input."""
        node = self.outer.create_arg(tensor)
        if node not in self.inputs:
            nodes = self.graph.nodes
            first = next((n for n in nodes if n.op != "placeholder"), self.graph._root)
            with self.graph.inserting_before(first):
                self.inputs[node] = self.graph.placeholder(node.name)
        self.track(tensor, Proxy(self.inputs[node], self))
        self.inputs[node].meta = dict(node.meta)

    def take_own(self, value) -> None:
        """Makes an argument that nothing outside stands for an input."""
        node = self.graph.placeholder(f"arg{len(self.own)}_1")
        self.own.append(node)
        self.track(value, Proxy(node, self))

    def take_sizes(self, number) -> None:
        """Takes the tensors outside whose sizes a symbolic number is made of."""
        outside = self.outer.sizes.sources
        for name in set(re.findall(r"\b[su]\d+\b", repr(number))) & set(outside):
            owner = outside[name][0].node
            if name not in self.sizes.sources:
                known = self.outer.known.values()
                self.take(next(t for t, p in known if p.node is owner))


class _BranchTracer(BranchInputs, PythonKeyTracer):
    """Records a branch; tensors of the program around it become inputs."""

    def create_arg(self, a):
        """As always, but for tensors and sizes of the program outside."""
        if isinstance(a, taeda.Tensor) and id(a) not in self.known:
            if self.outer.knows(a):
                self.take(a)
        elif isinstance(a, py_sym_types):
            self.take_sizes(a)
        return super().create_arg(a)


def record(mode, function, operands: tuple, own: bool = False):
    """The tracer of a branch, its results and their structure; without an output.

    Args:
        mode: records the program around the branch, and does not see it.
        own: whether operands are stand-ins, and no values of the program.
    """
    tracer = _BranchTracer()
    tracer.begin(mode.tracer)
    inner = type(mode)(tracer, mode.tracing_mode, mode.table)
    inner.env, inner.fake_mode = mode.env, mode.fake_mode
    mode.enabled = False
    fake_mode = mode.fake_mode
    before = None if fake_mode is None else fake_mode.on_item
    if before is not None:
        fake_mode.on_item = inner.learn_item
    try:
        for operand in pytree.tree_leaves(operands):
            if own:
                tracer.take_own(operand)
            elif isinstance(operand, taeda.Tensor):
                tracer.take(operand)
        with inner:
            result = function(*operands)
    finally:
        mode.enabled = True
        if before is not None:
            fake_mode.on_item = before
    leaves, spec = pytree.tree_flatten(result)
    return tracer, leaves, spec


def in_order(tracer, nodes: list) -> GraphModule:
    """The branch's graph with an input for each of these nodes outside."""
    last = tracer.own[-1] if tracer.own else None
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
    if tracer.own:
        _number(tracer.graph)
    return GraphModule(tracer.root, tracer.graph)


def _number(graph) -> None:
    """Numbers the inputs of a body, whatever stands for them outside."""
    places = [n for n in graph.nodes if n.op == "placeholder"]
    for i, node in enumerate(places):
        node.name = node.target = f"arg{i}_1"
        graph._graph_namespace.associate_name_with_obj(node.name, node)


def add_graph(tracer, name: str, branch, nodes: list):
    """Adds a branch to the graph around it under a name with a number behind."""
    number = sum(n.startswith(f"{name}_") for n in tracer.root._modules)
    path = f"{name}_{number}"
    setattr(tracer.root, path, in_order(branch, nodes))
    return tracer.create_node("get_attr", path, (), {})
