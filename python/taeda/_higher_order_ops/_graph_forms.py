"""The operators as captured graphs call them.

Functions are graphs that return tuples of tensors; trees are flat. After each graph
comes `extra`, what it reads besides its arguments.
"""

from __future__ import annotations

import taeda
from taeda._higher_order_ops.scan import placed

__all__ = ["associative_scan", "cond", "map_impl", "scan", "while_loop", "wrap"]


def cond(pred, true_graph, true_extra, false_graph, false_extra, operands) -> tuple:
    """What one of two graphs gives."""
    if pred:
        return true_graph(*operands, *true_extra)
    return false_graph(*operands, *false_extra)


def wrap(graph, extra: tuple, operands: tuple) -> tuple:
    """What the graph gives."""
    return graph(*operands, *extra)


def while_loop(cond_graph, cond_extra, body_graph, body_extra, carried) -> tuple:
    """The values once the first graph gives False."""
    while cond_graph(*carried, *cond_extra)[0]:
        carried = body_graph(*carried, *body_extra)
    return carried


def scan(graph, extra: tuple, init: tuple, xs: tuple, dim: int, reverse: bool) -> tuple:
    """The last values, then the stacked rest of what the graph gives."""
    carry, rows = init, []
    places = range(xs[0].size(dim))
    for i in reversed(places) if reverse else places:
        found = graph(*carry, *(x.select(dim, i) for x in xs), *extra)
        carry = found[: len(init)]
        rows.append(found[len(init) :])
    if reverse:
        rows.reverse()
    stacked = [taeda.stack(column) for column in zip(*rows, strict=True)]
    return (*carry, *(placed(y, xs[0], dim) for y in stacked))


def map_impl(graph, extra: tuple, xs: tuple) -> tuple:
    """What the graph gives for each row."""
    return scan(graph, extra, (), xs, 0, False)


def associative_scan(graph, extra: tuple, xs: tuple, dim: int, reverse: bool) -> tuple:
    """At each place the combination of all elements up to it."""
    carry, rows = None, []
    places = range(xs[0].size(dim))
    for i in reversed(places) if reverse else places:
        item = tuple(x.select(dim, i) for x in xs)
        carry = item if carry is None else graph(*carry, *item, *extra)
        rows.append(carry)
    if reverse:
        rows.reverse()
    return tuple(taeda.stack(column, dim) for column in zip(*rows, strict=True))
