"""`cond` in programs that are recorded: both branches are graphs."""

from __future__ import annotations

import taeda
from taeda import nn
from taeda.fx.experimental._branches import BranchInputs, add_graph
from taeda.fx.experimental.proxy_tensor import py_sym_types
from taeda.fx.proxy import Proxy
from taeda.utils import _pytree as pytree

from ._tracer import ExportMode, ExportTracer

__all__ = ["record", "record_cond"]


class _BranchTracer(BranchInputs, ExportTracer):
    """Records a branch; what it uses from outside becomes an input of its own.

    Args:
        outer: records the program around it.
    """

    def __init__(self, outer) -> None:
        super().__init__(outer.paths, outer.attributes)
        self.begin(outer)
        self.fake_mode, self.root = outer.fake_mode, nn.Module()
        self.module_stack = outer.module_stack

    lift = BranchInputs.take

    def create_arg(self, a):
        """As always; for a size the tensor outside that has it is taken."""
        if isinstance(a, py_sym_types):
            self.take_sizes(a)
        return super().create_arg(a)


def record(mode, function, operands: tuple, own: bool = False):
    """The tracer of a branch, its results and their structure; without an output.

    Args:
        mode: records the program around the branch.
        own: whether operands are stand-ins, and no values of the program.
    """
    tracer = _BranchTracer(mode.tracer)
    for value in pytree.tree_leaves(operands):
        (tracer.take_own if own else tracer.take)(value)
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
    return tracer, leaves, spec


def _branch(mode, function, operands: tuple):
    """A branch of `cond`, whose results are tensors and, in exports, integers."""
    tracer, leaves, spec = mode.record_function(function, operands)
    kinds = mode.constant_results
    if not all(isinstance(t, taeda.Tensor) or type(t) in kinds for t in leaves):
        wanted = "tensors or constant ints" if kinds else "tensors"
        result = pytree.tree_unflatten(leaves, spec)
        raise RuntimeError(f"cond: a branch must return {wanted}, got {result}")
    tracer.graph.output(tuple(tracer.create_arg(t) for t in leaves))
    return tracer, leaves, spec


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


def record_cond(mode, pred, true_fn, false_fn, operands):
    """Records `cond` as one node with the graphs of both branches.

    Args:
        mode: records the program.

    Raises:
        RuntimeError: the branches give unlike results, or something else than tensors
            and ints.
    """
    yes, first, spec = _branch(mode, true_fn, tuple(operands))
    no, second, other = _branch(mode, false_fn, tuple(operands))
    if spec != other or [*map(_like, first)] != [*map(_like, second)]:
        raise RuntimeError(
            f"cond: branches must return the same shapes and dtypes, got "
            f"{[*map(_like, first)]} and {[*map(_like, second)]}"
        )
    tracer = mode.tracer
    nodes = list(dict.fromkeys([*yes.inputs, *no.inputs]))
    graphs = [
        add_graph(tracer, f"{name}_graph", branch, nodes)
        for name, branch in (("true", yes), ("false", no))
    ]
    args = (tracer.create_arg(pred), *graphs, tuple(nodes))
    target = taeda.ops.higher_order.cond
    node = tracer.create_node("call_function", target, args, {}, "cond")
    proxy = Proxy(node, tracer)
    mode.enabled = False
    try:
        results = _results(mode, first, second, proxy)
        tracer.track(tuple(results), proxy)
    finally:
        mode.enabled = True
    return pytree.tree_unflatten(results, spec)
