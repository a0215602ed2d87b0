"""Control flow as backends that are functions read it."""

from __future__ import annotations

import pytest
import taeda
from taeda._higher_order_ops import associative_scan, map, scan, while_loop, wrap
from taeda.utils._pytree import tree_leaves

weight = taeda.ones(3) * 2


def chosen(x):
    return taeda.cond(x.sum() > 0, lambda y: y * weight, lambda y: y - x, (x.sin(),))


def sized(x):
    return taeda.cond(x.sum() > 0, lambda y: y * x.shape[0], lambda y: y, (x.sin(),))


def nested(x):
    def first(y):
        return taeda.cond(y.sum() > 1, lambda z: z * weight, lambda z: z + x, (y,))

    return taeda.cond(x.sum() > 0, first, lambda y: y - 1, (x.sin(),))


def looped(x):
    def body(i, v):
        return i + 1, v * weight

    return while_loop(lambda i, v: i < 3, body, (taeda.tensor(0), x))


def scanned(x):
    return scan(lambda c, r: (c + r, c * weight), x[0] * 0, x)


def scanned_back(x):
    return scan(lambda c, r: (c + r, c * weight), x[0] * 0, x, reverse=True)


def mapped(x):
    return map(lambda r, k: r * k + weight, x, weight.sin())


def combined(x):
    def both(p, q):
        return p * q + weight

    return associative_scan(both, x, 0, combine_mode="generic")


def wrapped(x):
    def inner(a, b=None):
        return {"a": (a * b).relu() + weight, "n": 3}

    found = wrap(inner, x + 1, b=x)
    return found["a"] * found["n"]


OPERATORS = {
    wrapped: ("wrap", ["wrap_body_0"]),
    chosen: ("cond", ["cond_true_0", "cond_false_0"]),
    sized: ("cond", ["cond_true_0", "cond_false_0"]),
    nested: ("cond", ["cond_true_0", "cond_false_0"]),
    looped: ("while_loop", ["cond_fn_0", "body_fn_0"]),
    scanned: ("scan", ["scan_combine_fn_0"]),
    scanned_back: (None, ["wrap_body_0"]),
    mapped: ("map_impl", ["map_body_0"]),
    combined: ("associative_scan", ["associative_scan_combine_fn_0"]),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", OPERATORS, ids=lambda p: p.__name__)
def test_operators_and_graphs_have_the_names_that_others_read(program, dynamic):
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module

    compiled = taeda.compile(program, backend=backend, fullgraph=True, dynamic=dynamic)
    for x in (taeda.rand(2, 3), -taeda.ones(4, 3), taeda.ones(4, 3)):
        pairs = zip(tree_leaves(compiled(x)), tree_leaves(program(x)), strict=True)
        for found, wanted in pairs:
            taeda.testing.assert_close(found, wanted)
    name, graphs = OPERATORS[program]
    assert [n for n, _ in seen[0].named_children()] == graphs
    targets = [n.target for n in seen[0].graph.nodes]
    if name is not None:
        assert getattr(taeda.ops.higher_order, name) in targets


def test_numbers_may_be_operands_of_nodes():
    choose = taeda.ops.higher_order.cond
    found = choose(taeda.tensor(False), lambda x, n: x, lambda x, n: x * n, (weight, 3))
    assert found.tolist() == [6.0] * 3
