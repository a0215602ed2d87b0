"""make_fx: the recorded graph computes what the program computed.

Where both libraries take a program apart alike, graphs are compared too; composite
operators and derivatives are made of others here (a transpose where PyTorch permutes,
expand without a view), so for those values alone count.
"""

from __future__ import annotations

import pathlib
import sys

import pytest
import taeda

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import attempt, check
from taeda.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

MODES = ("real", "fake", "symbolic")


def traced(L, function, *args, mode="real", **options):
    proxy = L.at("fx.experimental.proxy_tensor")
    return proxy.make_fx(function, tracing_mode=mode, **options)(*args)


def simple(L):
    x, told = L.values(2, 3), []
    functions = [
        (lambda x: x.sin() + 1, x),
        (lambda x: (x.split(1), x.max(1), x.sum(0)), x),
        (lambda a: {"r": a["x"].relu() * a["y"][0]}, {"x": x, "y": [x, 3]}),
        (lambda *a: a[0] + a[1], x, x),
        (lambda x: x.clone().add_(1).mul_(2), x),
        (lambda x: (x.exp(), x + 1)[1], x),
        (lambda x: L.cat([x, L.zeros(2, 4)], 1), x),
        (lambda x: L.rand(2).sum() + x.sum(), x),
        (lambda x: x.to(L.float64).softmax(-1), x),
    ]
    for mode in ("real", "fake"):
        for function, *args in functions:
            gm = traced(L, function, *args, mode=mode)
            told.append([gm.code, str(gm.graph)])
    return told


def states(L):
    x, c = L.values(2, 3), L.ones(3)
    net = L.filled(L.nn.Linear(3, 4))
    call = L.at("func").functional_call
    told = [
        traced(L, lambda x: x + c + c, x),
        traced(L, lambda x: net(x), x),
        traced(L, net, x),
        traced(L, lambda p, x: call(net, p, x), dict(net.named_parameters()), x),
    ]
    values = [gm(x) for gm in told[:3]]
    return [gm.code for gm in told], values, sorted(dict(told[0].named_buffers()))


def replaced(L):
    add = L.ops.aten.add.Tensor
    table = {add: lambda a, b, alpha=1: a - (-b)}
    gm = traced(L, lambda x: x + x.sin(), L.values(2), decomposition_table=table)
    return gm.code


def values_are_refused(L):
    x = L.values(2)
    return [
        attempt(traced, L, lambda x: x.sum().item(), x),
        attempt(traced, L, lambda x: x if x.sum() > 0 else -x, x),
        attempt(traced, L, lambda x: x, x, mode="none"),
    ]


def constants_that_change(L):
    def written(x):
        c = L.tensor(1.0)
        c.add_(2)
        return x * c.item()

    def through_a_view(x):
        c = L.tensor([2])
        (view,) = c.unbind(0)
        view.mul_(5)
        return x * c.item() if (c + 1).item() > 3 else x

    x = L.values(2)
    told = []
    for mode in ("real", "fake"):
        for f in (written, through_a_view):
            made = traced(L, f, x, mode=mode)
            told.append([made(x), made(x)])  # the graph's constants stay as they are
    return told


def gradients_that_are_off(L):
    def switched(x):
        y = x.sin()
        L.set_grad_enabled(False)
        z = y.cos()
        L.set_grad_enabled(True)
        return y + z.sin()

    def block(x):
        with L.no_grad():
            y = x.exp()
        return y

    x = L.values(2).requires_grad_()
    made = [traced(L, f, x, pre_dispatch=True) for f in (switched, block)]
    return [(gm.code, gm(x).requires_grad) for gm in made]


_SIMILAR = [simple, states, replaced, values_are_refused]


@pytest.mark.parametrize(
    "program", [*_SIMILAR, constants_that_change, gradients_that_are_off]
)
def test_recorded_graphs_are_equal(program) -> None:
    check(program)


def gradient(x):
    x = x.detach().requires_grad_()
    return taeda.autograd.grad((x.sin() * x).sum(), x)[0]


def attention(x):
    q = x.softmax(-1) @ x.T
    return taeda.nn.functional.layer_norm(q, q.shape[-1:]).relu(), x.mean(0, True)


def network(x):
    F = taeda.nn.functional
    target = taeda.arange(x.shape[0]) % x.shape[1]
    return F.cross_entropy(F.gelu(x) * 2, target), x.T.reshape(-1).cumsum(0)


def constants(x):
    y = taeda.tensor([1.0, 2.0, 3.0])
    if taeda.tensor(3).item() > 2:
        y = y * 2
    return x + y.add_(1)


PROGRAMS = [gradient, attention, network, constants]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_recorded_graphs_compute_the_same(program, mode) -> None:
    x = (taeda.arange(6.0).reshape(2, 3) - 2.5) / 2
    options = {"_allow_non_fake_inputs": program is constants}
    gm = make_fx(program, tracing_mode=mode, **options)(x)
    gm.graph.lint()
    for _ in range(2):  # constants stay as they are
        got, wanted = gm(x * 3), program(x * 3)
        several = isinstance(wanted, tuple)
        pairs = zip(got, wanted, strict=True) if several else [(got, wanted)]
        for a, b in pairs:
            taeda.testing.assert_close(a, b)
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    assert all(n.meta["val"] is not None for n in calls if n.users)


def widths(x):
    both = taeda.cat([x, taeda.ones(x.shape[0], 2 * x.shape[1] + 1)], 1)
    return both.reshape(-1), x.new_zeros((x.numel() + 3) // 2 % 5)


def drawn(x):
    c = taeda.tensor(1.0)
    c.normal_()
    return x * c.item()


def written_by_an_argument(x):
    c = taeda.tensor([1.0])
    view = c.view(1)
    c.add_(x[0, 0])
    return x * view.item()


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("program", [drawn, written_by_an_argument])
def test_a_constant_that_is_none_any_more_is_not_read(program, mode) -> None:
    """PyTorch reads what it was before, through a view or in the mode "fake"."""
    match = "value out of a tracing tensor" if mode == "real" else "_local_scalar_dense"
    with pytest.raises(RuntimeError, match=match):
        make_fx(program, tracing_mode=mode)(taeda.ones(2, 3))


class Wrapper(taeda.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = taeda.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(a):
            return a.inner if isinstance(a, Wrapper) else a

        args, kwargs = taeda.utils._pytree.tree_map(unwrap, (args, kwargs or {}))
        return func(*args, **kwargs)


@pytest.mark.parametrize("mode", MODES)
def test_what_a_class_of_tensors_calls_is_recorded(mode) -> None:
    gm = make_fx(lambda x: x * Wrapper(x), tracing_mode=mode)(taeda.ones(2))
    assert "mul.Tensor(x_1, x_1)" in gm.code and "constant" not in gm.code


def test_symbolic_graphs_fit_other_sizes() -> None:
    gm = make_fx(widths, tracing_mode="symbolic")(taeda.ones(2, 3))
    for sizes in ((4, 5), (3, 7)):
        x = taeda.rand(*sizes)
        for a, b in zip(gm(x), widths(x), strict=True):
            assert taeda.equal(a, b)
    read = gm.graph.find_nodes(op="call_function", target=taeda.ops.aten.sym_size.int)
    assert [n.args[1] for n in read] == [0, 1] and gm.shape_env is not None
    assert "Sym(s0)" in gm.print_readable(False)


def test_transforms_of_func_are_recorded() -> None:
    x = taeda.arange(6.0).reshape(2, 3)
    for transform in (
        taeda.func.vmap(lambda row: row.sum() * 2),
        taeda.func.grad(lambda t: (t.sin() * t).sum()),
        taeda.func.vmap(taeda.func.grad(lambda row: (row**3).sum())),
    ):
        gm = make_fx(transform)(x)
        taeda.testing.assert_close(gm(x), transform(x))
        assert len(gm.graph.nodes) > 2


def test_the_mode_is_there_during_the_trace_alone() -> None:
    seen = []
    make_fx(lambda x: (seen.append(get_proxy_mode()), x + 1)[1])(taeda.ones(1))
    assert seen[0] is not None and get_proxy_mode() is None
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(lambda x: x.item())(taeda.ones(1))
    assert get_proxy_mode() is None
    make_fx(lambda x: (seen.append(get_proxy_mode()), x)[1], pre_dispatch=True)(
        taeda.ones(1)
    )
    assert seen[1] is not None and get_proxy_mode() is None


def test_what_is_done_aside_is_not_recorded() -> None:
    from taeda.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    def fn(x):
        with disable_proxy_modes_tracing():
            taeda.exp(x)
        return x.sin()

    gm = make_fx(fn)(taeda.ones(1))
    assert [n.name for n in gm.graph.nodes] == ["x_1", "sin", "output"]


def test_a_graph_is_recorded_again_by_other_operators() -> None:
    from taeda.fx.experimental.proxy_tensor import DecompositionInterpreter

    gm = make_fx(lambda x: x.sin() + x)(taeda.ones(2))
    graph = taeda.fx.Graph()
    table = {taeda.ops.aten.add.Tensor: lambda a, b: a - taeda.neg(b)}
    DecompositionInterpreter(gm, graph, table).run(taeda.ones(2))
    new = taeda.fx.GraphModule(gm, graph)
    names = [n.name for n in graph.nodes]
    assert names == ["x_1", "sin", "neg", "sub", "output"]
    taeda.testing.assert_close(new(taeda.ones(2)), gm(taeda.ones(2)))


def test_operators_of_sizes_and_their_proxies() -> None:
    sizes = taeda.ops.aten.sym_size
    assert sizes.int(taeda.ones(2, 3), 1) == 3
    assert tuple(sizes(taeda.ones(2, 3))) == (2, 3)
    assert taeda.ops.aten.sym_numel(taeda.ones(2, 3)) == 6
    assert not hasattr(taeda.ops.aten, "sym_nothing")
    gm = taeda.fx.symbolic_trace(lambda x: taeda.ops.aten.sym_size.int(x, 0))
    assert gm(taeda.ones(4, 2)) == 4
    added = taeda.fx.symbolic_trace(lambda x: taeda.ops.aten.add.Tensor(x, 1))
    assert [n.name for n in added.graph.nodes] == ["x", "add_tensor", "output"]
    assert added(taeda.ones(1)).item() == 2


def test_nodes_that_read_geometry_know_its_values() -> None:
    graph = taeda.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = taeda.ones(2, 3)[1:]
    size, stride = graph.create_size_node(x, 1), graph.create_stride_node(x, 0)
    offset = graph.create_storage_offset_node(x)
    assert [n.meta["val"] for n in (size, stride, offset)] == [3, 3, 3]
    graph.output((size, stride, offset))
    gm = taeda.fx.GraphModule({}, graph)
    assert gm(taeda.ones(4, 5)[2:]) == (5, 5, 10)


def test_proxies_that_compute_shapes() -> None:
    from taeda._subclasses import FakeTensorMode
    from taeda.fx.proxy import MetaProxy

    mode, graph = FakeTensorMode(), taeda.fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = mode.from_tensor(taeda.ones(2, 3))
    made = taeda.sum(MetaProxy(node, None, mode), 1)
    assert type(made) is MetaProxy and tuple(made.node.meta["val"].shape) == (2,)
    assert repr(made) == "MetaProxy(sum_1)"
