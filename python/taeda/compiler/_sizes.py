"""Sizes and numbers that differ from call to call, as capture and graphs see them."""

from __future__ import annotations

import builtins
import math
import operator
import re
from types import SimpleNamespace

import taeda
from taeda import _shapes
from taeda._symbols import symbol_text
from taeda.fx.experimental._sizes import Sizes
from taeda.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    GuardOnDataDependentSymNode,
)

__all__ = ["Applied", "GraphSizes", "SizeText", "library_part"]

_SYMBOLIC = (taeda.SymInt, taeda.SymFloat, taeda.SymBool)


class FloatInput(taeda.SymFloat):
    """A float that is an input of the graph, or that a tensor holds."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def __float__(self) -> float:
        from taeda import _capture

        return _capture.fixed_number(self)

    def _is_number(self) -> bool:
        from taeda import _capture

        return _capture.is_capturing()


class SizeText(str):
    """A number among a node's arguments, as an expression of symbols."""

    __slots__ = ()


class Applied:
    """A float among a node's arguments: a function of numbers."""

    def __init__(self, function, args: tuple) -> None:
        self.function, self.args = function, args


def _number_type(o) -> type:
    for symbolic, plain in zip(_SYMBOLIC, (int, float, bool), strict=True):
        if isinstance(o, symbolic):
            return plain
    return type(o)


def _isinstance(o, classes) -> bool:
    if isinstance(o, _SYMBOLIC):
        plain = _number_type(o)()
        return isinstance(plain, classes) or isinstance(o, classes)
    return isinstance(o, classes)


def _quotient_parts(o):
    """Numerator and denominator of `n / d` for symbols; None for all else."""
    if isinstance(o, taeda.SymFloat) and o._compute is operator.truediv:
        a, b = o._parts
        if not isinstance(a, (float, taeda.SymFloat)) and b > 0:
            return a, b
    return None


def _floor(o):
    parts = _quotient_parts(o)
    return parts[0] // parts[1] if parts else math.floor(o)


def _ceil(o):
    parts = _quotient_parts(o)
    return -(-parts[0] // parts[1]) if parts else math.ceil(o)


def _is_of_data(o) -> bool:
    """Whether a float depends on one that is known when the graph runs."""
    if isinstance(o, FloatInput):
        return symbol_text(o).startswith("zuf")
    return isinstance(o, taeda.SymFloat) and any(map(_is_of_data, o._parts))


def _read(plain, method):
    """`int` or `float` of a tensor."""

    def read(o):
        from taeda import _capture

        found = _capture.item(method, o)
        return plain(o) if found is None else found

    return read


_int_of_tensor = _read(int, taeda.Tensor.__int__)
_float_of_tensor = _read(float, taeda.Tensor.__float__)


def _float(o):
    is_tensor = isinstance(o, taeda.Tensor)
    return _float_of_tensor(o) if is_tensor else taeda.sym_float(o)


def _int(o):
    from taeda import _capture

    if isinstance(o, taeda.Tensor):
        return _int_of_tensor(o)
    if _is_of_data(o):
        return _capture.number(int, (o,), True)
    parts = _quotient_parts(o)
    if parts and parts[0] >= 0:
        return parts[0] // parts[1]
    return taeda.sym_int(o)


def _extremum(plain, symbolic):
    def choose(*args):
        if len(args) < 2 or not all(isinstance(a, (int, taeda.SymInt)) for a in args):
            return plain(*args)
        best = args[0]
        for other in args[1:]:
            best = symbolic(best, other)
        return best

    return choose


def _len(o):
    return o.shape[0] if isinstance(o, taeda.Tensor) and o.dim() else len(o)


_FUNCTIONS = {
    isinstance: _isinstance,
    type: _number_type,
    int: _int,
    float: _float,
    len: _len,
    min: _extremum(min, taeda.sym_min),
    max: _extremum(max, taeda.sym_max),
    math.sqrt: taeda.sym_sqrt,
    math.floor: _floor,
    math.ceil: _ceil,
    math.trunc: _int,
}


def _settings(dynamic):
    """What of `_dynamo.config` says which sizes are symbols.

    Args:
        dynamic: the argument of compile, which goes before the settings.
    """
    config = getattr(taeda._dynamo, "config", None)

    def setting(name: str, otherwise: bool) -> bool:
        return bool(getattr(config, name, otherwise))

    automatic = setting("automatic_dynamic_shapes", True)
    static = setting("assume_static_by_default", True)
    if dynamic is not None:
        automatic, static = dynamic and automatic, not dynamic
    return (
        automatic,
        not static,
        not setting("specialize_int", False),
        not setting("specialize_float", False),
        setting("force_parameter_static_shapes", True),
        setting("force_nn_module_property_static_shapes", True),
        setting("capture_scalar_outputs", False),
        setting("capture_dynamic_output_shape_ops", False),
        _sources(),
    )


def _sources():
    """What says of an input's name whether its sizes are asked to be symbols.

    Returns:
        A function of the name that gives 2 for those of `unbacked_sources`, 1 for those
        of `dynamic_sources`, else 0; None where the settings name nothing.
    """
    from . import config

    patterns = [
        [p for p in re.split(r"[\s,]+", text) if p]
        for text in (config.unbacked_sources, config.dynamic_sources)
    ]
    if not any(patterns):
        return None

    def kind(name: str) -> int:
        for kind, group in zip((2, 1), patterns, strict=True):
            if any(p == name or re.match(p, name) for p in group):
                return kind
        return 0

    return kind


def library_part() -> dict:
    """What the native side needs of this."""
    return {
        "sym_int": taeda.SymInt,
        "sym_bool": taeda.SymBool,
        "sym_float": taeda.SymFloat,
        "float_input": FloatInput,
        "shared_symbol": _shapes.shared_symbol,
        "constraint_error": ConstraintViolationError,
        "data_error": GuardOnDataDependentSymNode,
        "dynamic_settings": _settings,
        "symbolic_functions": _FUNCTIONS,
        "size_marker": SizeText,
        "apply_marker": Applied,
        "as_number": operator.index,
    }


class GraphSizes:
    """The nodes of sizes in a captured graph.

    Args:
        graph: gets the nodes.
    """

    def __init__(self, graph) -> None:
        self._graph = graph
        self._sizes = Sizes(graph)

    def add_symbol(self, name: str, symbol: str, value):
        """A placeholder for a symbol, which is also its node."""
        node = self._graph.placeholder(name, type(value))
        node.meta["val"] = node.meta["example_value"] = value
        self._sizes.learn_number(value, SimpleNamespace(node=node))
        self._sizes.made[symbol] = node
        return node

    def learn(self, symbol, node) -> None:
        """Notes the node of a number that comes from data."""
        node.meta["val"] = node.meta["example_value"] = symbol
        self._sizes.learn_number(symbol, SimpleNamespace(node=node))

    def node(self, argument):
        """The node of a SizeText or Applied; other arguments as they are."""
        if isinstance(argument, SizeText):
            return self._sizes.read(str(argument))
        if not isinstance(argument, Applied):
            return argument
        function = argument.function
        if function is builtins.float:
            function = taeda.sym_float
        return self._graph.call_function(
            function, tuple(self.node(a) for a in argument.args)
        )
