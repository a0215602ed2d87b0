"""Control flow in graphs for backends that are Python functions.

Captures call the forms of `_higher_order_ops/_graph_forms.py`, where each graph has
what it reads besides behind it. Backends are told the operators of
`taeda.ops.higher_order`, whose graphs all take the same.
"""

from __future__ import annotations

import taeda
from taeda._higher_order_ops import _graph_forms as forms

__all__ = ["control_node"]


def _taking(module, own: int, extra: tuple, union: list, form) -> None:
    """Gives a graph one input for each of the union, and another kind of result.

    Args:
        own: how many inputs are the operator's arguments.
        extra: what the others stand for now.
    """
    graph = module.graph
    places = [n for n in graph.nodes if n.op == "placeholder"]
    known = dict(zip(extra, places[own:], strict=True))
    last = places[own - 1] if own else None
    for i, each in enumerate(union):
        if each not in known:
            with graph.inserting_before(next(iter(graph.nodes))):
                known[each] = graph.placeholder(f"unread_{i}")
        if last is None:
            next(iter(graph.nodes)).prepend(known[each])
        else:
            last.append(known[each])
        last = known[each]
    (output,) = (n for n in graph.nodes if n.op == "output")
    output.args = (form(output.args[0]),)
    module.recompile()


def _single(results: tuple):
    return results[0]


def control_node(function, arguments: tuple, add):
    """(operator, arguments) of a call of a form; None for other calls.

    Args:
        add: (name, piece) -> (the node of a graph, the graph).
    """
    names, pieces, rest = _parts(function, tuple(arguments))
    if names is None:
        return None
    extras = [extra for _, extra, *_ in pieces]
    union = list(dict.fromkeys(each for extra in extras for each in extra))
    nodes = []
    for name, (piece, extra, own, form) in zip(names, pieces, strict=True):
        node, module = add(name, piece)
        _taking(module, own, extra, union, form)
        nodes.append(node)
    operators = taeda.ops.higher_order
    if function is forms.cond:
        pred, operands = rest
        return operators.cond, (pred, *nodes, (*operands, *union))
    if function is forms.while_loop:
        return operators.while_loop, (*nodes, rest[0], tuple(union))
    if function is forms.wrap:
        return operators.wrap, (*nodes, *rest[0], *union)
    if function is forms.map_impl:
        return operators.map_impl, (*nodes, list(rest[0]), union)
    if function is forms.scan:
        return operators.scan, (*nodes, *map(list, rest), union)
    return operators.associative_scan, (*nodes, list(rest[0]), union)


def _parts(function, arguments: tuple) -> tuple:
    """(names, (graph, extra, own inputs, form) of each, what else there is)."""
    if function is forms.cond:
        pred, first, first_extra, second, second_extra, operands = arguments
        own = len(operands)
        pieces = [(first, first_extra, own, tuple), (second, second_extra, own, tuple)]
        return ("cond_true", "cond_false"), pieces, (pred, operands)
    if function is forms.while_loop:
        test, test_extra, body, body_extra, carried = arguments
        own = len(carried)
        pieces = [(test, test_extra, own, _single), (body, body_extra, own, tuple)]
        return ("cond_fn", "body_fn"), pieces, (carried,)
    if function is forms.wrap:
        graph, extra, operands = arguments
        return ("wrap_body",), [(graph, extra, len(operands), tuple)], (operands,)
    if function is forms.map_impl:
        graph, extra, xs = arguments
        return ("map_body",), [(graph, extra, len(xs), tuple)], (xs,)
    if function is forms.scan and arguments[4:] == (0, False):
        graph, extra, init, xs = arguments[:4]
        own = len(init) + len(xs)
        return ("scan_combine_fn",), [(graph, extra, own, list)], (init, xs)
    if function is forms.associative_scan and arguments[3:] == (0, False):
        graph, extra, xs = arguments[:3]
        pieces = [(graph, extra, 2 * len(xs), list)]
        return ("associative_scan_combine_fn",), pieces, (xs,)
    return None, None, None
