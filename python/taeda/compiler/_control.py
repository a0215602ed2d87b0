"""Operators of control flow in captured graphs: their functions are pieces.

Each function takes the place of one of `taeda._higher_order_ops` while a graph is
captured. What it cannot hold (functions with side effects, branches of unlike results)
ends the graph, and the operator runs as it is.
"""

from __future__ import annotations

import functools

import taeda
from taeda import _capture
from taeda import _higher_order_ops as operators
from taeda._higher_order_ops import _graph_forms as forms
from taeda._higher_order_ops.cond import check as check_cond
from taeda._higher_order_ops.map import check as check_map
from taeda._higher_order_ops.scan import check as check_scan
from taeda._higher_order_ops.scan import placed
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


def _is_constant(value) -> bool:
    return value is None or type(value) in (bool, int, float)


def _piece(function, trees, what: str, rest=(), *, constants: bool = False):
    """The graph of function(*trees, *rest), with stand-ins for the trees' tensors.

    Args:
        constants: whether results may have numbers and None among them, which are no
            results of the graph.

    Returns:
        (result's leaves, its structure, (graph, the nodes that it reads besides))
    """
    leaves, spec = tree_flatten(trees)
    given = [_stand_in(x) if isinstance(x, taeda.Tensor) else x for x in leaves]
    own = [t for t in given if isinstance(t, taeda.Tensor)]
    numbers = [_capture.argument(t) for t in own]
    mark = _capture.begin_piece()
    args = (*tree_unflatten(given, spec), *rest)
    result = _capture.run(function, args, {})
    found, shape = tree_flatten(result)
    made = [each for each in found if not (constants and _is_constant(each))]
    graph, free = _capture.end_piece(
        mark, _tensors(made, f"{what}: a function"), numbers
    )
    # An argument that is a result too has to be told from it.
    found = [t.view_as(t) if any(t is g for g in own) else t for t in found]
    return found, shape, (graph, tuple(free))


def _same(a, b) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)  # -0.0, nan


def _without_constants(yes: list, no: list) -> tuple[list, list]:
    """The tensors that two branches gave; what else there is has to be the same."""
    pairs = list(zip(yes, no, strict=True))
    for a, b in pairs:
        if _is_constant(a) != _is_constant(b) or _is_constant(a) and not _same(a, b):
            _capture.break_graph(f"cond: unlike results {a} and {b}")
    pairs = [pair for pair in pairs if not all(map(_is_constant, pair))]
    return [a for a, _ in pairs], [b for _, b in pairs]


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
    leaves = tree_flatten(tuple(operands))[0]
    # Numbers are the branches' own, constants or sizes that they read.
    numbers = (int, taeda.SymInt)
    given = _tensors([x for x in leaves if not isinstance(x, numbers)], "cond")
    found, shape, first = _piece(true_fn, tuple(operands), "cond", constants=True)
    other, form, second = _piece(false_fn, tuple(operands), "cond", constants=True)
    if shape != form:
        _capture.break_graph("cond: branches give unlike structures")
    yes, no = _without_constants(found, other)
    _check_like(no, yes, "cond")
    args = (pred, *first, *second, tuple(given))
    results = [a + b if a.requires_grad != b.requires_grad else a
               for a, b in zip(_results(yes), no, strict=True)]  # fmt: skip
    _capture.emit(forms.cond, args, {}, results)
    left = iter(results)
    whole = [each if _is_constant(each) else next(left) for each in found]
    return tree_unflatten(whole, shape)


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
    rows = [placed(y, given[0], dim) for y in _rows(found[len(begun) :], count)]
    results = [*carry, *rows]
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


def wrap(func, *args, **kwargs):
    if not callable(func):
        return NotImplemented
    leaves = tree_flatten((args, kwargs))[0]
    given = [x for x in leaves if isinstance(x, taeda.Tensor)]

    def call(args, kwargs):
        return func(*args, **kwargs)

    found, shape, graph = _piece(call, (args, kwargs), "wrap", constants=True)
    results = _results([each for each in found if not _is_constant(each)])
    _capture.emit(forms.wrap, (*graph, tuple(given)), {}, results)
    left = iter(results)
    whole = [each if _is_constant(each) else next(left) for each in found]
    return tree_unflatten(whole, shape)


def _told(handler, name: str):
    """The handler, which says where a graph ended in it."""
    from ._frames import GraphBreak

    @functools.wraps(handler)
    def handle(*args, **kwargs):
        try:
            return handler(*args, **kwargs)
        except GraphBreak as end:
            _capture.break_graph(f"{end} (Higher Order Operator: {name})")

    return handle


def table() -> dict:
    """The functions above by what they stand for."""
    inner = "torch.ops.higher_order"
    return {
        operators.associative_scan: _told(
            associative_scan, f"{inner}.associative_scan"
        ),
        operators.cond: _told(cond, "torch.cond"),
        operators.map: _told(map_rows, f"{inner}.map_impl"),
        operators.scan: _told(scan, f"{inner}.scan"),
        operators.while_loop: _told(while_loop, f"{inner}.while_loop"),
        operators.wrap.function: _told(wrap, f"{inner}.wrap"),
    }
