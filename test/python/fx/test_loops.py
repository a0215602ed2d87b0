"""Loops under `make_fx`: nodes with the graphs of what they run."""

from __future__ import annotations

import pytest
import taeda
from taeda._higher_order_ops import associative_scan, map, scan, while_loop
from taeda.fx.experimental.proxy_tensor import make_fx


def looped(x, y):
    def body(i, v):
        return i + 1, v * 2 + y

    return while_loop(lambda i, v: (i < 3) & (v.sum() < 1e3), body, (y.sum() * 0, x))


def scanned(x, y):
    last, rows = scan(lambda c, r: (c + r, {"r": c * r + y[0]}), y, x)
    return last, rows["r"]


def scanned_back(x, y):
    return scan(lambda c, r: (c * r, (c, r.sum())), x[:, 0], x, dim=1, reverse=True)


def mapped(x, y):
    return map(lambda r, k: (r * k - y, r.sum()), x, y)


def combined(x, y):
    found = associative_scan(lambda a, b: a * b, x, 1, combine_mode="generic")
    return found, associative_scan(
        lambda a, b: (a[0] + b[0], a[1] * b[1]), (x, y.expand(x.shape)), 0, True
    )


def nested(x, y):
    def body(v):
        return (v + taeda.cond(y.sum() > 0, abs, neg, (y,)),)

    return map(lambda r: while_loop(lambda v: v.sum() < 9, body, (r.exp(),)), x)


def neg(t):
    return -t


PROGRAMS = {
    looped: "while_loop",
    scanned: "scan",
    scanned_back: "scan",
    mapped: "map_impl",
    combined: "associative_scan",
    nested: "map_impl",
}


def flat(found) -> list:
    return taeda.utils._pytree.tree_leaves(found)


def operators(graph) -> list:
    return [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_loops_are_nodes(program, mode, above):
    taeda.manual_seed(3)
    x, y = taeda.randn(4, 3), taeda.ones(3) / 3
    graph = make_fx(program, tracing_mode=mode, pre_dispatch=above)(x, y)
    assert PROGRAMS[program] in operators(graph)
    for factor in (1.0, -2.0):
        ours, wanted = graph(x * factor, y), program(x * factor, y)
        for a, b in zip(flat(ours), flat(wanted), strict=True):
            taeda.testing.assert_close(a, b)
    # The graph is a program again.
    again = make_fx(graph, tracing_mode=mode, pre_dispatch=above)(x, y)
    assert operators(again) == operators(graph)
    taeda.testing.assert_close(flat(again(-x, y)), flat(program(-x, y)))


@pytest.mark.parametrize("program", [scanned, mapped], ids=lambda p: p.__name__)
def test_the_number_of_rows_is_a_symbol(program):
    x, y = taeda.randn(4, 3), taeda.ones(3)
    graph = make_fx(program, tracing_mode="symbolic")(x, y)
    x = taeda.randn(6, 3)
    taeda.testing.assert_close(flat(graph(x, y)), flat(program(x, y)))


def test_turns_are_those_of_each_call():
    graph = make_fx(looped, tracing_mode="fake")(taeda.ones(3), taeda.ones(3))
    found = graph(taeda.full((3,), 600.0), taeda.ones(3))
    assert found[1].tolist() == [600.0] * 3
    text = str(graph.graph)
    assert "while_loop_cond_graph_0" in text and "while_loop_body_graph_0" in text


def test_loops_that_take_gradients_are_unrolled():
    def gradient(x, y):
        x = x.detach().requires_grad_()
        return taeda.autograd.grad(scanned(x, y)[0].prod(), x)[0]

    x, y = taeda.rand(4, 3), taeda.ones(3)
    graph = make_fx(gradient)(x, y)
    assert "scan" not in operators(graph)
    taeda.testing.assert_close(graph(x + 1, y), gradient(x + 1, y))


def test_functions_that_write_to_their_arguments_are_refused():
    with pytest.raises(RuntimeError, match="writes to its arguments"):
        make_fx(lambda x: map(lambda r: r.add_(1), x))(taeda.ones(2, 3))
    with pytest.raises(RuntimeError, match="must stay like they are"):
        make_fx(
            lambda x: while_loop(lambda v: v.any(), lambda v: (v[:1],), (x,)),
            tracing_mode="fake",
        )(taeda.ones(3))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2])
def test_rows_of_scans_stand_along_the_dim_they_came_from(dim):
    x = taeda.arange(24.0).view(2, 3, 4)
    last, same = scan(lambda c, r: (c + 1, r * c), taeda.tensor(1.0), x, dim=dim)
    assert same.shape == x.shape
    place = dim % 3
    shape = [1] * 3
    shape[place] = -1
    assert same.equal(x * taeda.arange(1.0, x.shape[dim] + 1).view(shape))
    one = scan(lambda c, r: (c, r.sum(0)), last, x, dim=dim)[1]
    wanted = taeda.stack([r.sum(0) for r in x.unbind(dim)])
    assert one.equal(wanted if place > 1 else wanted.movedim(0, place))
