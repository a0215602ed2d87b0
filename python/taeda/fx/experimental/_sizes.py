"""Symbolic sizes in graphs: nodes that compute them."""

from __future__ import annotations

import ast
import operator

import taeda
from taeda._symbols import symbol_text
from taeda.fx.node import Node

__all__ = ["Sizes"]

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_FUNCTIONS = {
    "Eq": operator.eq,
    "FloatPow": operator.pow,
    "FloatTrueDiv": operator.truediv,
    "IntTrueDiv": operator.truediv,
    "Max": taeda.sym_max,
    "Min": taeda.sym_min,
    "Mod": operator.mod,
    "Ne": operator.ne,
    "ToFloat": taeda.sym_float,
}


class Sizes:
    """Knows where the symbols of a trace come from.

    A size is an expression of symbols; its text is read, and each operation becomes a
    node once. A symbol is read from the first tensor that has it among its sizes.

    Args:
        tracer: gets the nodes.
    """

    def __init__(self, tracer) -> None:
        self.tracer = tracer
        self.sources: dict[str, tuple] = {}  # symbol -> (proxy of a tensor, dim)
        self.made: dict[str, object] = {}  # text of an expression -> its node

    def learn(self, tensor, proxy) -> None:
        """Notes the sizes of a tensor that are symbols."""
        for dim, size in enumerate(tensor.shape):
            if isinstance(size, taeda.SymInt):
                self.sources.setdefault(symbol_text(size), (proxy, dim, size))

    def learn_number(self, number, proxy) -> None:
        """Notes an input, or a number out of a tensor, that is a symbol itself."""
        self.made.setdefault(symbol_text(number), proxy.node)

    def node(self, size):
        """The node of a number; what it is where it is fixed."""
        if isinstance(size, taeda.SymInt) and size.node.is_fixed():
            return int(size)
        return self.read(symbol_text(size))

    def read(self, text: str):
        """The node of an expression."""
        return self._build(ast.parse(text, mode="eval").body)

    def _build(self, tree):
        text = ast.unparse(tree)
        if text in self.made:
            return self.made[text]
        if text in self.sources:
            proxy, dim, size = self.sources[text]
            target, args = taeda.ops.aten.sym_size.int, (proxy.node, dim)
            made = self._node(target, args, size, "sym_size_int")
        elif isinstance(tree, ast.Constant):
            return tree.value
        elif isinstance(tree, ast.BinOp):
            target = _OPERATORS[type(tree.op)]
            made = self._call(target, (self._build(tree.left), self._build(tree.right)))
        elif isinstance(tree, ast.Compare):
            sides = (tree.left, tree.comparators[0])
            made = self._call(
                _OPERATORS[type(tree.ops[0])], tuple(map(self._build, sides))
            )
        elif isinstance(tree, ast.UnaryOp):
            made = self._call(_OPERATORS[type(tree.op)], (self._build(tree.operand),))
        elif isinstance(tree, ast.Call) and tree.func.id in _FUNCTIONS:
            args = tuple(map(self._build, tree.args))
            made = self._call(_FUNCTIONS[tree.func.id], args)
        else:
            raise NotImplementedError(f"make_fx: no node computes the size {text}")
        self.made[text] = made
        return made

    def _call(self, target, args):
        values = [a.meta["val"] if isinstance(a, Node) else a for a in args]
        return self._node(target, args, target(*values))

    def _node(self, target, args, value, name=None):
        node = self.tracer.create_node("call_function", target, args, {}, name)
        node.meta["val"] = value
        return node
