"""Operators of control flow in captured graphs: their functions are pieces.

Each function takes the place of one of `taeda._higher_order_ops` while a graph is
captured. What it cannot hold (functions with side effects, branches of unlike results)
ends the graph, and the operator runs as it is.
"""

from __future__ import annotations

import taeda
from taeda import _capture
from taeda import _higher_order_ops as operators
from taeda._higher_order_ops import _graph_forms as forms
from taeda._higher_order_ops.cond import check as check_cond
from taeda._higher_order_ops.map import check as check_map
from taeda._higher_order_ops.scan import check as check_scan
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["table"]


def _stand_in(like):
    """A tensor without memory: an argument of a piece."""
    made = taeda.empty_strided(
        like.shape, like.stride(), dtype=like.dtype, device="meta"
    )
    return made.requires_grad_(like.requires_grad)


def _tensors(tree, what: str) -> list:
    leaves = tree_flatten(tree)[0]
    if not all(isinstance(leaf, taeda.Tensor) for leaf in leaves):
        _capture.break_graph(f"{what} with something else than tensors")
    return leaves


def _piece(function, trees, what: str, rest=()):
    """The graph of function(*trees, *rest), with stand-ins for the trees' leaves.

    Returns:
        (result's leaves, its structure, (graph, the nodes that it reads besides))
    """
    leaves, spec = tree_flatten(trees)
    given = [_stand_in(leaf) for leaf in leaves]
    numbers = [_capture.argument(t) for t in given]
    mark = _capture.begin_piece()
    args = (*tree_unflatten(given, spec), *rest)
    result = _capture.run(function, args, {})
    found = _tensors(result, f"{what}: a function")
    graph, free = _capture.end_piece(mark, found, numbers)
    # An argument that is a result too has to be told from it.
    found = [t.view_as(t) if any(t is g for g in given) else t for t in found]
    return found, tree_flatten(result)[1], (graph, tuple(free))


def _check_like(found, wanted, what: str) -> None:
    """End the graph where two lists of tensors have unlike shapes or dtypes."""
    a = [(tuple(t.shape), t.dtype) for t in found]
    b = [(tuple(t.shape), t.dtype) for t in wanted]
    if a != b:
        _capture.break_graph(f"{what}: unlike results {a} and {b}")


def _results(found: list) -> list:
    """What the operator gives: tensors of their own."""
    return [t.view_as(t) if _capture.is_node(t) else t for t in found]


def cond(pred, true_fn, false_fn, operands=()):
    if not isinstance(pred, taeda.Tensor):
        check_cond(pred, true_fn, false_fn, operands)
        return _capture.run(true_fn if pred else false_fn, tuple(operands), {})
    if pred.numel() != 1 or not (callable(true_fn) and callable(false_fn)):
        return NotImplemented
    if not isinstance(operands, (tuple, list)):
        return NotImplemented
    given = _tensors(operands, "cond")
    yes, shape, first = _piece(true_fn, tuple(operands), "cond")
    no, other, second = _piece(false_fn, tuple(operands), "cond")
    if shape != other:
        _capture.break_graph("cond: branches give unlike structures")
    _check_like(no, yes, "cond")
    args = (pred, *first, *second, tuple(given))
    results = [a + b if a.requires_grad != b.requires_grad else a
               for a, b in zip(_results(yes), no, strict=True)]  # fmt: skip
    _capture.emit(forms.cond, args, {}, results)
    return tree_unflatten(results, shape)


def while_loop(cond_fn, body_fn, carried_inputs):
    if not (callable(cond_fn) and callable(body_fn)):
        return NotImplemented
    if not isinstance(carried_inputs, (tuple, list)):
        return NotImplemented
    carried = tuple(carried_inputs)
    given = _tensors(carried, "while_loop")
    pred, _, first = _piece(cond_fn, carried, "while_loop")
    if len(pred) != 1 or pred[0].numel() != 1 or pred[0].dtype != taeda.bool:
        _capture.break_graph("while_loop: cond_fn gives no boolean")
    found, shape, second = _piece(body_fn, carried, "while_loop")
    if shape != tree_flatten(carried)[1]:
        _capture.break_graph("while_loop: body_fn gives another structure")
    _check_like(found, given, "while_loop")
    results = _results(found)
    args = (*first, *second, tuple(given))
    _capture.emit(forms.while_loop, args, {}, results)
    return tree_unflatten(results, shape)


def _rows(tensors: list, count: int, dim: int = 0) -> list:
    return [taeda.stack([t] * count, dim) for t in tensors]


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    count = check_scan(combine_fn, init, xs, dim, reverse)
    given, begun = _tensors(xs, "scan"), _tensors(init, "scan")
    if count == 0:
        return NotImplemented
    spec = tree_flatten(xs)[1]
    first = tree_unflatten([x.select(dim, 0) for x in map(_stand_in, given)], spec)
    found, shape, graph = _piece(combine_fn, (init, first), "scan")
    _check_like(found[: len(begun)], begun, "scan")
    carry = _results(found[: len(begun)])
    results = [*carry, *_rows(found[len(begun) :], count)]
    args = (*graph, tuple(begun), tuple(given), dim, reverse)
    _capture.emit(forms.scan, args, {}, results)
    return tuple(tree_unflatten(results, shape))


def map_rows(f, xs, *args):
    given, spec = check_map(xs)
    first = tree_unflatten([x[0] for x in map(_stand_in, given)], spec)
    found, shape, graph = _piece(f, (first,), "map", args)
    results = _rows(found, given[0].size(0))
    _capture.emit(forms.map_impl, (*graph, tuple(given)), {}, results)
    return tree_unflatten(results, shape)


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    given = _tensors(xs, "associative_scan")
    if not given or not callable(combine_fn) or given[0].size(dim) == 0:
        return NotImplemented
    spec = tree_flatten(xs)[1]
    item = tree_unflatten([x.select(dim, 0) for x in map(_stand_in, given)], spec)
    found, shape, graph = _piece(combine_fn, (item, item), "associative_scan")
    _check_like(found, tree_flatten(item)[0], "associative_scan")
    results = _rows(found, given[0].size(dim), dim)
    args = (*graph, tuple(given), dim, reverse)
    _capture.emit(forms.associative_scan, args, {}, results)
    return tree_unflatten(results, shape)


def table() -> dict:
    """The functions above by what they stand for."""
    return {
        operators.associative_scan: associative_scan,
        operators.cond: cond,
        operators.map: map_rows,
        operators.scan: scan,
        operators.while_loop: while_loop,
    }
