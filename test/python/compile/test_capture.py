"""Captured functions compute what they compute by hand, and leave the same behind."""

from __future__ import annotations

import collections
import functools
import sys

import pytest
import taeda
from taeda import nn
from taeda._dynamo.exc import Unsupported
from taeda.compiler._frames import capture

scale = 3
counter = 0
names = ["a"]


class Affine:
    bias = 0.5

    def __init__(self, k):
        self.k = k
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.k + self.bias

    @property
    def double(self):
        return self.k * 2


def straight(x):
    y = x * scale + 1
    return {"y": y, "z": (y.sum(), [x - y])}


def loops(x):
    for i, part in enumerate(x.split(1)):
        if i % 2:
            continue
        x = x + part * i
    while x.dim() < 3:
        x = x.unsqueeze(0)
    return x


def comprehensions(x):
    a = [x * i for i in range(3) if i]
    b = {k: v.sum() for k, v in zip("pq", a, strict=True)}
    return sum(a), b, sorted(b, key=lambda name: -ord(name))


def closures(x):
    total = x

    def add(n):
        nonlocal total
        total = total + n
        return total

    return [add(n) for n in (1, 2)], total


def strings(x):
    text = f"{x.shape[0]:>4}|{scale!r}|{tuple(x.shape)}"
    return x + len(text), text


def generators(x):
    def parts(n):
        for i in range(n):
            got = yield x + i
            assert got is None
        return n

    def outer():
        n = yield from parts(3)
        yield x * n

    return list(outer())


def exceptions(x):
    try:
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError(f"no {error}") from error
        finally:
            x = x + 1
    except (TypeError, ValueError) as error:
        return x, str(error)
    return None


def displays(x):
    kept = [1, 2, 3]
    return x * sum(kept), {*kept, 4, 5}, x.max(0), collections.namedtuple


def unpacking(x):
    first, *rest = [x, x + 1, x + 2]
    (a, b), c = rest, first
    return functools.partial(taeda.add, a)(b), c, {**{"k": a}, "l": [*rest]}


def with_blocks(x):
    with taeda.no_grad():
        y = x * 2
    return y, taeda.is_grad_enabled(), y.requires_grad


def matching(x):
    match tuple(x.shape):
        case (2, n):
            return x * n
        case [_, *_]:
            return x
    return None


def star_calls(x):
    def f(a, /, b=2, *rest, c, **more):
        return a * b + c + len(rest) + len(more)

    return f(x, c=1), f(x, 3, 4, c=5, d=6), f(*[x, 1], **{"c": 2})


STRAIGHT = [
    straight,
    loops,
    comprehensions,
    closures,
    strings,
    generators,
    exceptions,
    unpacking,
    displays,
    matching,
    star_calls,
]


@pytest.mark.parametrize("function", STRAIGHT, ids=lambda f: f.__name__)
def test_one_graph(function, same):
    x = taeda.randn(2, 3, requires_grad=True)
    compiled = capture(function, fullgraph=True)
    for _ in range(2):
        same(compiled(x), function(x))
    assert compiled.explain()["graphs"] == 1


def test_guards_see_what_changed(monkeypatch, same):
    compiled = capture(straight, fullgraph=True)
    x = taeda.ones(2)
    same(compiled(x), straight(x))
    monkeypatch.setattr(sys.modules[__name__], "scale", 5)
    same(compiled(x), straight(x))
    same(compiled(taeda.ones(3)), straight(taeda.ones(3)))
    same(compiled(x.double()), straight(x.double()))
    assert compiled.explain()["graphs"] == 4


def test_attributes_and_methods():
    thing = Affine(2)

    def f(x):
        return thing(x) + thing.double

    compiled = capture(f, fullgraph=True)
    x = taeda.ones(2)
    assert compiled(x).tolist() == [6.5, 6.5]
    assert thing.calls == 1
    thing.k = 3
    assert compiled(x).tolist() == [9.5, 9.5]
    assert thing.calls == 2


def test_side_effects_reach_outside_objects():
    log, table, seen = [1], {"a": 1}, {3}
    queue = collections.deque([1, 2], maxlen=2)
    thing = Affine(1)

    def f(x):
        global counter
        counter += 1
        log.append(x + 1)
        log.insert(0, "first")
        table["b"] = x
        del table["a"]
        seen.add(4)
        queue.append(x.sum())
        thing.new = [x]
        thing.new.append(log)
        return log

    before = counter
    x = taeda.ones(2)
    out = capture(f, fullgraph=True)(x)
    assert out is log and log[:2] == ["first", 1] and log[2].tolist() == [2, 2]
    assert list(table) == ["b"] and table["b"] is x
    assert seen == {3, 4} and queue[0] == 2 and float(queue[1]) == 2
    assert thing.new[1] is log and thing.new[0] is x
    assert counter == before + 1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
        self.norm = nn.LayerNorm(3)
        self.register_buffer("offset", taeda.ones(3))

    def forward(self, x, flag=True):
        y = self.norm(self.inner(x)) + self.offset
        return y if flag and self.training else -y


def test_modules(same):
    model = Block()

    def f(x):
        return model(x)

    compiled = capture(f, fullgraph=True)
    x = taeda.randn(5, 3, requires_grad=True)
    for _ in range(2):
        same(compiled(x), f(x))
    model.eval()
    same(compiled(x), f(x))
    assert compiled.explain()["graphs"] == 2
    compiled(x).sum().backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    f(x).sum().backward()
    same(got, [p.grad for p in model.parameters()])


def test_break_in_a_loop(capsys, same):
    def f(x):
        kept = []
        for i in range(3):
            x = x + i
            print("at", i)
            kept.append(x * 2)
        return kept

    compiled = capture(f)
    x = taeda.ones(2)
    for _ in range(2):
        same(compiled(x), [x * 2, (x + 1) * 2, (x + 3) * 2])
        assert capsys.readouterr().out == "at 0\nat 1\nat 2\n"
    assert any("print" in reason for reason, _ in compiled.explain()["reasons"])


def test_break_on_a_tensors_value(same):
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y + 1
        return y - 1

    compiled = capture(f)
    for x in (taeda.ones(2), -taeda.ones(2), taeda.ones(2)):
        same(compiled(x), f(x))
    with pytest.raises(Unsupported, match="value of a tensor"):
        capture(f, fullgraph=True)(taeda.ones(2))


def test_break_in_with_and_in_a_called_function(same):
    def inner(x):
        y = x * 2
        return y * y.sum().item()

    def f(x):
        with taeda.no_grad():
            y = inner(x) + 1
        return y, (x + y).requires_grad

    compiled = capture(f)
    x = taeda.ones(2, requires_grad=True)
    for _ in range(2):
        same(compiled(x), f(x))
        assert taeda.is_grad_enabled()


def test_break_where_an_iterator_lives():
    def f(x):
        out = []
        for a, b in zip([x, x + 1], enumerate([2, 3]), strict=True):
            out.append(a.sum().item() + sum(b))
        return out

    x = taeda.ones(2)
    assert capture(f)(x) == f(x)


def test_errors_are_those_of_the_program():
    def f(x, n):
        if n > 1:
            raise KeyError(n)
        return x[n]

    compiled = capture(f)
    assert compiled(taeda.ones(2), 1).item() == 1
    with pytest.raises(KeyError, match="2"):
        compiled(taeda.ones(2), 2)
    with pytest.raises(TypeError, match="missing 1 required positional"):
        compiled(taeda.ones(2))


def test_a_backend_receives_a_graph_module(same):
    seen = []

    def backend(module, inputs):
        seen.append((module, inputs))
        return module.forward

    def f(x, more):
        low, _ = (x @ x.T).relu().max(1)
        low += 1
        return {"y": taeda.stack([low, more[0]]), "x": x}, len(more)

    x, more = taeda.randn(3, 3), [taeda.ones(3)]
    compiled = capture(f, backend=backend)
    for _ in range(2):
        same(compiled(x, more), f(x, more))
    ((module, inputs),) = seen
    assert inputs[0] is x and inputs[1] is more[0]
    calls = [n for n in module.graph.nodes if n.op.startswith("call_")]
    # T, matmul, relu, max, its first element, add_, stack.
    assert len(calls) == 7
    module.graph.lint()


def test_guards_see_changes_of_what_dicts_hold(same):
    model = Block()

    def f(m, x):
        return m(x)

    compiled = capture(f, fullgraph=True)
    x = taeda.randn(5, 3)
    same(compiled(model, x), f(model, x))
    same(compiled(model, x), f(model, x))
    # In place, by another parameter, by another size, by another module.
    with taeda.no_grad():
        model.inner[0].weight.mul_(2)
    same(compiled(model, x), f(model, x))
    assert compiled.explain()["graphs"] == 1
    model.inner[0].bias = nn.Parameter(taeda.zeros(4))
    same(compiled(model, x), f(model, x))
    assert compiled.explain()["graphs"] == 1
    model.norm.eps = 0.5
    same(compiled(model, x), f(model, x))
    model.inner[2] = nn.Linear(4, 3, bias=False)
    same(compiled(model, x), f(model, x))
    assert compiled.explain()["graphs"] == 3
    assert compiled(Block(), x[:2]).shape == (2, 3)
    model.inner[0].weight.requires_grad_(False)
    same(compiled(model, x), f(model, x))
    assert compiled.explain()["graphs"] == 5


class Doubled(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 100


def own_function(x):
    return Doubled.apply(x) + 1


def hooked(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 7)
    return y + 1


def in_autocast(x):
    with taeda.autocast("cpu", dtype=taeda.bfloat16):
        return x @ x + 1


def transformed(x):
    return taeda.func.grad(lambda v: (v * v).sum())(x) + x


@pytest.mark.parametrize(
    "function", [own_function, hooked, in_autocast, transformed, with_blocks]
)
def test_what_no_graph_holds_runs_as_it_is(function, same):
    compiled = capture(function)
    for _ in range(2):
        x = taeda.randn(3, 3, requires_grad=True)
        got, wanted = compiled(x), function(x)
        same(got, wanted)
        if isinstance(got, tuple):
            continue
        grads = [taeda.autograd.grad(y.float().sum(), x)[0] for y in (got, wanted)]
        same(*grads)
