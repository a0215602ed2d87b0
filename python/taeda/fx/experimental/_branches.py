"""`cond` under `make_fx`: both branches are graphs."""

from __future__ import annotations

import taeda
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from .proxy_tensor import PythonKeyTracer

__all__ = ["record"]


class _BranchTracer(PythonKeyTracer):
    """Records a branch; tensors of the program around it become inputs.

    Args:
        outer: records the program around it.
    """

    def __init__(self, outer) -> None:
        super().__init__()
        self.outer = outer
        self.inputs: dict = {}  # node outside -> placeholder here

    def take(self, tensor) -> None:
        """Makes a tensor of the program outside an input."""
        node = self.outer.create_arg(tensor)
        if node not in self.inputs:
            nodes = self.graph.nodes
            first = next((n for n in nodes if n.op != "placeholder"), self.graph._root)
            with self.graph.inserting_before(first):
                self.inputs[node] = self.graph.placeholder(node.name)
        self.track(tensor, Proxy(self.inputs[node], self))

    def create_arg(self, a):
        """As always, but for tensors of the program outside."""
        if isinstance(a, taeda.Tensor) and id(a) not in self.known:
            if _is_known(a, self.outer):
                self.take(a)
        return super().create_arg(a)


def _is_known(tensor, tracer) -> bool:
    """Whether a tracer, or one around it, tracks a tensor."""
    outer = getattr(tracer, "outer", None)
    known = id(tensor) in tracer.known
    return known or (outer is not None and _is_known(tensor, outer))


def record(mode, function, operands: tuple):
    """The tracer of a branch, its results and their structure.

    Args:
        mode: records the program around the branch, and does not see it.
    """
    tracer = _BranchTracer(mode.tracer)
    for operand in pytree.tree_leaves(operands):
        if isinstance(operand, taeda.Tensor):
            tracer.take(operand)
    inner = type(mode)(tracer, mode.tracing_mode, mode.table)
    mode.enabled = False
    try:
        with inner:
            result = function(*operands)
    finally:
        mode.enabled = True
    leaves, spec = pytree.tree_flatten(result)
    if not all(isinstance(t, taeda.Tensor) for t in leaves):
        raise RuntimeError(f"cond: a branch must return tensors, got {result}")
    tracer.graph.output(tuple(tracer.create_arg(t) for t in leaves))
    return tracer, leaves, spec
