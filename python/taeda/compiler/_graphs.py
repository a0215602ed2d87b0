"""Captured graphs as `fx.GraphModule`s, for backends that are Python functions."""

from __future__ import annotations

import enum
import operator
import re
import types
from operator import getitem

import taeda
from taeda import _C, _capture, fx
from taeda._ops import OpOverload
from taeda._own import is_own_module
from taeda.fx import immutable_collections  # noqa: F401 (types that pytrees know)

from ._control_nodes import control_node
from ._frames import Number
from ._operators import level_types
from ._sizes import Applied, GraphSizes, SizeText

__all__ = ["graph_module"]

# Operators that change their first operand where they can.
_CHANGING = frozenset(
    getattr(operator, f"i{name}")
    for name in "add and floordiv lshift mul mod or pow rshift sub truediv xor".split()
)

# What code that is generated from a graph can spell; containers are seen through.
_WRITTEN = (
    *(str, int, float, bool, complex, bytes, type(None), type(...), slice, range),
    *(taeda.dtype, taeda.device, taeda.layout, taeda.memory_format, taeda.Tensor),
    *(OpOverload, enum.Enum, types.GenericAlias),
)


def graph_module(nodes, outputs, inputs=None, sizes=(), variables=(), *, place_of=None):
    """A captured graph as an `fx.GraphModule`.

    Args:
        nodes: for each node, (name of a place, value) of an input, (function,
            arguments, names of the last ones) of a call, and the symbol that it gives
            a value to, if it does; None where nothing reads it.
        outputs: numbers of nodes.
        inputs: the number of a node, or (name, symbol, value) of a number, in order;
            all inputs among the nodes by default.
        sizes: expressions of symbols that the module returns too.
        variables: for each node None, or the name of what keeps it in the program.
        place_of: takes the name of an input's place and returns another one.

    Returns:
        The module, whose forward returns a tuple, and the values of its inputs.
    """
    graph = fx.Graph()
    made, values, pieces = [None] * len(nodes), [], {}
    taken: set[str] = set()  # two places may have one name
    numbers = GraphSizes(graph)

    def value(argument):
        if isinstance(argument, Number):
            return made[argument]
        if isinstance(argument, fx.Node):
            return argument  # of a piece
        if isinstance(argument, Applied):
            argument = Applied(argument.function, tuple(map(value, argument.args)))
        if isinstance(argument, (Applied, SizeText)):
            return numbers.node(argument)
        if isinstance(argument, _capture.Piece):
            return add_piece("wrap_body", argument)[0]
        if not isinstance(argument, _WRITTEN):
            name = f"constant_{len(pieces)}"
            pieces[name] = argument
            return graph.get_attr(name)
        return argument

    def add_piece(name, piece):
        name = f"{name}_{sum(n.startswith(f'{name}_') for n in pieces)}"
        pieces[name] = graph_module(*piece.describe(Number))[0]
        return graph.get_attr(name), pieces[name]

    def named(argument):
        return fx.node.map_aggregate(argument, value)

    if inputs is None:
        inputs = [
            i for i, node in enumerate(nodes) if node and isinstance(node[0], str)
        ]
    for entry in inputs:
        if isinstance(entry, int):
            place = nodes[entry][0]
            name = _identifier(place_of(place) if place_of else place)
            name = name or f"arg_{entry}"
            name = f"{name}_{entry}" if name in taken else name
            taken.add(name)
            given = nodes[entry][1]
            kind = None if given is None else type(given)  # a piece's have no values
            made[entry] = graph.placeholder(name, kind)
            made[entry].meta["example_value"] = _example(given)
            values.append(given)
        else:
            name, symbol, number = entry
            name = place_of(name) if place_of else name
            name = _identifier(name)
            name = f"{name}_{symbol}" if name in taken else name
            taken.add(name)
            numbers.add_symbol(name, symbol, number)
            values.append(number)
    for i, node in enumerate(nodes):
        if node is None or isinstance(node[0], str):
            continue
        function, arguments, names, *symbol = node
        control = control_node(function, arguments, add_piece) if not names else None
        function, arguments = control or (function, arguments)
        count = len(arguments) - len(names or ())
        args = tuple(named(a) for a in arguments[:count])
        kwargs = dict(zip(names or (), map(named, arguments[count:]), strict=True))
        made[i] = _add_call(graph, function, args, kwargs)
        if i < len(variables) and variables[i]:
            made[i]._rename(variables[i])
        if function in _CHANGING and isinstance(arguments[0], Number):
            # Who reads the variable from now on reads what the operator returned.
            made[arguments[0]] = made[i]
        if symbol:
            numbers.learn(symbol[0], made[i])
    graph.output(
        tuple(made[i] for i in outputs) + tuple(value(SizeText(text)) for text in sizes)
    )
    for node in reversed([m for m in made if m is not None]):
        # Elements of several results that nobody reads.
        if node.op == "call_function" and node.target is getitem and not node.users:
            graph.erase_node(node)
    return fx.GraphModule(pieces, graph), values


def _example(value):
    """A fake tensor like an input: a graph keeps no memory of the program alive."""
    plain = type(value) in (taeda.Tensor, taeda.nn.Parameter)
    if not plain or value.layout != taeda.strided:
        return value
    from taeda._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(value)


def _identifier(place: str) -> str:
    """`L['self'].lin.weight` as `L_self_lin_weight`."""
    return re.sub(r"[^a-zA-Z0-9]+", "_", place)


def _add_call(graph, function, args, kwargs):
    owner = getattr(function, "__objclass__", None)
    name = getattr(function, "__name__", "")
    is_method = owner is not None and issubclass(taeda.Tensor, owner)
    if is_method or vars(taeda.Tensor).get(name) is function:
        if hasattr(operator, name) and name.startswith("__"):
            return graph.call_function(getattr(operator, name), args, kwargs)
        return graph.call_method(name, args, kwargs)
    if getattr(function, "__name__", "") in ("__get__", "__set__"):
        access = getattr if function.__name__ == "__get__" else setattr
        name = function.__self__.__name__
        return graph.call_function(access, (args[0], name, *args[1:]))
    if getattr(owner, "__module__", "") == "numpy" and isinstance(owner, type):
        return graph.call_method(name, args, kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, _C._FunctionBase):
        named = _named(function, f"{owner.__name__}_apply", owner.__module__)
        return graph.call_function(named, args)
    if name == "__torch_function__":
        # Of the first argument, a class, which may have another one of that name.
        return graph.call_function(_named(function, "torch_function"), args)
    if _is_of_level(function) or _is_own_method(function):
        return graph.call_method(function.__name__, args, kwargs)
    return graph.call_function(function, args, kwargs)


def _is_of_level(function) -> bool:
    name = getattr(function, "__name__", "")
    return any(getattr(kind, name, None) is function for kind in level_types())


def _is_own_method(function) -> bool:
    """Whether it is a function of a class of this library, which has no path."""
    path = getattr(function, "__qualname__", "")
    own = is_own_module(getattr(function, "__module__", None))
    is_method = "." in path and "<locals>" not in path
    return own and is_method and isinstance(function, types.FunctionType)


def _named(function, name: str, module: str = "captured"):
    """A method as a function of Python, to which generated code gives a name."""

    def call(*args):
        return function(*args)

    call.__name__ = call.__qualname__ = name
    # Not of this package: it has no path that could be spelled.
    call.__module__ = module
    return call
