"""Loops of exported programs are nodes, and run as often as each call asks."""

from __future__ import annotations

import io

import pytest
import taeda
from taeda import export
from taeda._higher_order_ops import associative_scan, map, scan, while_loop


class Program(taeda.nn.Module):
    """A function of a module with a layer and a buffer."""

    def __init__(self, function) -> None:
        super().__init__()
        self.lin, self.function = taeda.nn.Linear(3, 3), function
        self.register_buffer("b", taeda.ones(3) / 3)

    def forward(self, x):
        return self.function(self, x)


def looped(net, x):
    def body(i, v):
        return i + 1, net.lin(v) + net.b

    return while_loop(lambda i, v: (i < 3) & (v.sum() < 99), body, (x.sum() * 0, x))


def counted(net, x):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, net.lin(v) * i), (0, x))


def scanned(net, x):
    def step(carry, row):
        return carry + net.lin(row), (carry * row + x.shape[0], row.sum())

    return scan(step, net.b, x)


def scanned_back(net, x):
    return scan(lambda c, r: (c + r, c * r), x[:, 0], x, dim=1, reverse=True)


def mapped(net, x):
    return map(lambda r, k: (net.lin(r) * k + x.shape[0], r.sum()), x, net.b)


def combined(net, x):
    found = associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic")
    return found + net.b


def nested(net, x):
    def positive(r):
        return while_loop(lambda v: v.sum() < 9, lambda v: (v + net.b,), (r.exp(),))[0]

    return map(lambda r: taeda.cond(r.sum() > 0, positive, net.lin, (r,)), x)


PROGRAMS = {
    looped: "while_loop",
    counted: "while_loop",
    scanned: "scan",
    scanned_back: "scan",
    mapped: "map_impl",
    combined: "associative_scan",
    nested: "map_impl",
}


def operators(program) -> list:
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


def reloaded(program):
    data = io.BytesIO()
    export.save(program, data)
    data.seek(0)
    return export.load(data)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_loops_are_nodes(function, dynamic):
    taeda.manual_seed(5)
    net, x = Program(function), taeda.randn(4, 3)
    shapes = ({0: export.Dim("rows", min=2)},) if dynamic else None
    ep = export.export(net, (x,), dynamic_shapes=shapes)
    assert operators(ep).count(PROGRAMS[function]) == 1
    again = export.export(ep.module(), (x,), dynamic_shapes=shapes)
    programs = [ep, ep.run_decompositions(), reloaded(ep), again]
    modules = [p.module() for p in programs]
    modules += [export.unflatten(ep), taeda.compile(ep.module())]
    for given in (x, -x, taeda.randn(6, 3)) if dynamic else (x, -x):
        for module in modules:
            taeda.testing.assert_close(module(given), net(given))


def test_gradients_of_loops_are_those_of_the_run():
    net, x = Program(scanned), taeda.randn(4, 3)
    module = export.export(net, (x,)).module()
    module(x)[0].sum().backward()
    net(x)[0].sum().backward()
    taeda.testing.assert_close(module.lin.weight.grad, net.lin.weight.grad)


def test_a_gradient_inside_of_the_program_is_refused():
    def derived(net, x):
        loss = while_loop(lambda v: v.sum() < 9, lambda v: (v + net.lin.bias,), (x,))
        return taeda.autograd.grad(loss[0].sum() + net.b.sum(), net.lin.bias)[0]

    with pytest.raises(RuntimeError, match="has no derivative"):
        export.export(Program(derived), (taeda.ones(3),))
