"""symbolic_trace: the graph, names, code and text are PyTorch's, letter by letter."""

from __future__ import annotations

import math
import operator
import pathlib
import sys
from typing import Dict, List, Optional, Tuple  # noqa: UP035  annotations under test

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from both import Library, attempt, check, graph_told


def operators(L):
    def fn(a, b, n):
        c = -(a @ b) / 2 - (3 + a) ** 2 // 1
        d = (a > b, ~(a > 0), a % 2, 7 % n, n << 1, 1 >> n, a == b, a != b, abs(a))
        return c[0, 1:], c[..., None], d, (a & b) | (a ^ b), +a, a >= b, a <= 1

    return graph_told(L.fx.symbolic_trace(fn))


def annotated(L):
    tensor = L.Tensor

    def fn(
        x: tensor,
        y: List[tensor],  # noqa: UP006
        k: Optional[int] = None,  # noqa: UP045
        *,
        flag: list[int] | None = None,
    ) -> Dict[str, Tuple[int, tensor]]:  # noqa: UP006
        return {"a": (1, x + y[0])}

    fn.__annotations__ = {
        "x": tensor,
        "y": List[tensor],  # noqa: UP006
        "k": Optional[int],  # noqa: UP045
        "flag": list[int] | None,
        "return": Dict[str, Tuple[int, tensor]],  # noqa: UP006
    }
    return graph_told(L.fx.symbolic_trace(fn))


def plain_annotations(L):
    def fn(x, n):
        return x * n

    fn.__annotations__ = {"x": L.Tensor, "n": int, "return": L.Tensor}
    return graph_told(L.fx.symbolic_trace(fn))


def methods_and_attributes(L):
    def fn(x):
        y = x.mT.contiguous().view(-1, x.size(0)).to(L.float32).to(L.device("cpu"))
        return y, x.shape[0], getattr(x, "dtype"), x.add_(1), x.size()  # noqa: B009

    return graph_told(L.fx.symbolic_trace(fn))


def structures(L):
    def fn(xs, d, *args, **kw):
        a, b = xs
        joined = L.cat([a, b * 2], dim=0)
        return {
            "k": (joined, None),
            "s": [d["b"], slice(0, 2)],
            "z": (args[0], kw["q"]),
        }

    return graph_told(L.fx.symbolic_trace(fn))


def functional(L):
    F = L.nn.functional

    def fn(x, w):
        y = F.relu(F.linear(x, w)) + F.softmax(x, dim=-1) + F.gelu(x)
        y = F.dropout(y, 0.5, True) + F.layer_norm(x, (3,)) + F.pad(x, (0, 0))
        return y, F.cross_entropy(x, w), F.interpolate(x, scale_factor=2.0)

    return graph_told(L.fx.symbolic_trace(fn))


def builtins_and_math(L):
    def fn(x):
        return math.sqrt(x.size(0)), math.ceil(x.item()), float("inf"), float("nan")

    return graph_told(L.fx.symbolic_trace(fn))


def hidden_names(L):
    def fn(x, inf, device):
        max = x.max()
        return max.min(), x.float().int(), x.sum().all(), inf.nan(), device.type

    return graph_told(L.fx.symbolic_trace(fn))


def constants(L):
    bias = L.ones(2)
    gm = L.fx.symbolic_trace(lambda x: (x + bias, x * L.ones(2), x - bias))
    return graph_told(gm), gm(L.ones(2)), sorted(n for n, _ in gm.named_buffers())


def concrete(L):
    def fn(x, flag, d, n):
        return (x + 1 if flag else x - 1) + d["a"] + d["b"][1]

    ph = L.fx.PH
    args = {"flag": True, "d": {"a": ph, "b": (1, ph)}, "n": None}
    gm = L.fx.symbolic_trace(fn, concrete_args=args)
    return graph_told(gm), gm(L.ones(1), True, {"a": 1, "b": (1, L.ones(1))}, None)


def concrete_flag(L):
    gm = L.fx.symbolic_trace(lambda x, f: x if f else -x, concrete_args={"f": False})
    return graph_told(gm), gm(L.ones(1), False), attempt(gm, L.ones(1), True)


def nested_modules(L):
    nn = L.nn
    inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([inner, nn.Sequential(nn.Linear(3, 2))])
            self.scale = nn.Parameter(L.ones(2))
            self.register_buffer("shift", L.ones(2))

        def forward(self, x, mask=None):
            for layer in self.layers:
                x = layer(x)
            return x * self.scale + self.shift * self.scale

    gm = L.fx.symbolic_trace(L.filled(Net()).eval())
    stack = [str(n.meta.get("nn_module_stack")) for n in gm.graph.nodes]
    return graph_told(gm), str(gm), gm(L.values(2, 3)), sorted(gm.state_dict()), stack


def shared_module_called_twice(L):
    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self.b = L.nn.Linear(2, 2)

        def forward(self, x):
            return self.b(self.a(x))

    return graph_told(L.fx.symbolic_trace(Net()))


def errors(L):
    functions = (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: list(x),
        lambda x: len(x),
        lambda x: [*x],
        lambda x: L.sin(*x),
        lambda x: 1 in x,
        lambda x: int(x),
        lambda x: {x: 1},
        lambda *x: x[0].nothing(object()),
    )
    return [attempt(L.fx.symbolic_trace, f) for f in functions]


def unpacking(L):
    def fn(x):
        (a, b), c = x.split(2), x.max(0)
        d, *_ = c[0], 1
        return a + b + d

    return graph_told(L.fx.symbolic_trace(fn))


def leaf_rule_and_buffers(L):
    class Whole(L.fx.Tracer):
        proxy_buffer_attributes = True

        def is_leaf_module(self, m, name):
            return isinstance(m, L.nn.ReLU)

    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = L.nn.ReLU()
            self.register_buffer("shift", L.ones(2))

        def forward(self, x):
            return self.relu(x) + self.shift

    net = L.nn.Sequential(Net(), L.nn.ReLU())
    graph = Whole().trace(net)
    return str(graph), graph_told(L.fx.GraphModule(net, graph, "Own"))


def known_parameter_sizes(L):
    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = L.nn.Parameter(L.ones(3))

        def forward(self, x):
            return x + self.w if self.w.shape[0] == 3 and self.w.dim() == 1 else x

    tracer = L.fx.Tracer(param_shapes_constant=True)
    return str(tracer.trace(Net()))


def recorded_asserts(L):
    class Asserting(L.fx.Tracer):
        trace_asserts = True

    space: dict = {}  # in a text of its own, since pytest rewrites asserts
    exec("def fn(x):\n    assert x.dim(), 'text'\n    return x", space)
    return [str(n.target) for n in Asserting().trace(space["fn"]).nodes]


PROGRAMS = [
    *(operators, annotated, plain_annotations, methods_and_attributes, structures),
    *(functional, builtins_and_math, hidden_names, constants, concrete, concrete_flag),
    *(nested_modules, shared_module_called_twice, errors, unpacking),
    *(leaf_rule_and_buffers, known_parameter_sizes),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_traces_are_equal(program) -> None:
    check(program)


def test_asserts_are_recorded_on_request() -> None:
    told = recorded_asserts(Library("taeda"))
    assert told[:2] == ["x", "dim"] and "assert_fn" in told[2]


def test_texts_of_refusals() -> None:
    fx = Library("taeda").fx
    proxy = Library("taeda").at("fx.proxy")
    for fn, text in (
        (lambda x: 1 if x else 2, "cannot be used as inputs to control flow"),
        (lambda x: list(x), "Proxy object cannot be iterated"),
    ):
        with pytest.raises(proxy.TraceError, match=text):
            fx.symbolic_trace(fn)
    with pytest.raises(
        RuntimeError, match="'len' is not supported in symbolic tracing"
    ):
        fx.symbolic_trace(lambda x: len(x))


def test_a_trace_leaves_modules_as_they_were_also_when_it_fails() -> None:
    L = Library("taeda")
    call, read = L.nn.Module.__call__, L.nn.Module.__getattr__
    attempt(L.fx.symbolic_trace, lambda x: 1 if x else 2)
    assert (L.nn.Module.__call__, L.nn.Module.__getattr__) == (call, read)
    assert "__call__" not in vars(L.nn.Module)


def test_another_thread_runs_modules_while_one_traces() -> None:
    import threading

    L = Library("taeda")
    net = L.nn.Sequential(L.nn.Linear(2, 2))
    inside, done, got = threading.Event(), threading.Event(), []

    def other() -> None:
        inside.wait(10)
        got.append(net(L.ones(1, 2)))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    class Net(L.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net

        def forward(self, x):
            inside.set()
            done.wait(10)
            return self.inner(x)

    gm = L.fx.symbolic_trace(Net())
    thread.join()
    assert isinstance(got[0], L.Tensor)
    assert [n.op for n in gm.graph.nodes] == ["placeholder", "call_module", "output"]


def test_the_operator_table_covers_the_operators() -> None:
    node = Library("taeda").at("fx.graph")
    assert set(node.reflectable_magic_methods) < set(node.magic_methods)
    theirs = Library("torch").at("fx.graph")
    for table in ("magic_methods", "inplace_methods", "reflectable_magic_methods"):
        assert getattr(node, table) == getattr(theirs, table)
    assert operator.add.__name__ in node.magic_methods
