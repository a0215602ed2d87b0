"""The default backend: how it deals with numbers, and what it leaves."""

from __future__ import annotations

import pytest
import taeda

BLOCKING = {"blocking": True}


def losses(wrap) -> list[float]:
    """Of a training step that clears, fills and uses gradients."""
    taeda.manual_seed(0)
    net = taeda.nn.Sequential(taeda.nn.Linear(3, 8), taeda.nn.GELU())
    optimizer = taeda.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = taeda.randn(4, 3)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    run = wrap(step)
    return [float(run(x)) for _ in range(5)]


@pytest.mark.parametrize("options", [None, BLOCKING])
def test_gradients_are_cleared_at_every_call(options) -> None:
    found = losses(lambda f: taeda.compile(f, options=options))
    assert found == pytest.approx(losses(lambda f: f), rel=1e-5)


def test_hooks_are_called_at_every_call() -> None:
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(seen.append)
        return y.sin()

    compiled = taeda.compile(f)
    for _ in range(3):
        compiled(taeda.ones(2, requires_grad=True)).sum().backward()
    assert len(seen) == 3


def test_what_autograd_knows_of_an_input_changes_at_every_call() -> None:
    compiled = taeda.compile(lambda x: (x.requires_grad_() * 3).sum())
    for _ in range(3):
        x = taeda.ones(2)
        compiled(x).backward()
        assert x.grad.tolist() == [3, 3]


def rows(x, n: int):
    """Sizes and a number among the arguments of calls."""
    y = x.reshape(x.shape[0] * 2, -1).softmax(-1) * n
    return y.view(x.shape), x.shape[0] + n


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_sizes_and_numbers_that_differ(dynamic) -> None:
    compiled = taeda.compile(rows, dynamic=dynamic, options=BLOCKING)
    for batch in (3, 5, 8, 5):
        for n in (2, 7):
            x = taeda.randn(batch, 6)
            want, found = rows(x, n), compiled(x, n)
            taeda.testing.assert_close(found[0], want[0])
            assert found[1] == want[1]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_numbers_between_tensors(count) -> None:
    def mixed(*given):
        return sum(given[i] * given[i + 1].exp() for i in range(0, len(given), 2))

    compiled = taeda.compile(mixed, dynamic=True, options=BLOCKING)
    for batch in (3, 5, 3):
        tensors = [taeda.randn(batch, 4) for _ in range(count)]
        given = [a for i, x in enumerate(tensors) for a in (batch + i, x)]
        taeda.testing.assert_close(compiled(*given), mixed(*given))


def test_sizes_among_arguments_are_traced(monkeypatch) -> None:
    monkeypatch.setenv("TAEDA_COMPILE_STRICT", "1")
    compiled = taeda.compile(lambda x, y: x.expand(y.shape) + 1, options=BLOCKING)
    assert compiled(taeda.ones(1), taeda.ones(3)).tolist() == [2, 2, 2]


def test_numbers_without_a_decimal_form(capfd) -> None:
    def f(x):
        return (x * float("inf")).nan_to_num(2.0) + (x - float("-inf")).exp()

    x = taeda.tensor([-1.0, 0.0, 3.0, 1e30])
    compiled = taeda.compile(f, options=BLOCKING)
    assert taeda.equal(compiled(x), f(x))
    assert "without compiled kernels" not in capfd.readouterr().err


def test_what_cannot_be_traced_keeps_its_sizes(monkeypatch) -> None:
    from taeda.compiler import _default

    class Refused:
        def __init__(self, function) -> None:
            self.function = function

        def prepare(self, *tensors) -> bool:
            return False

        def __call__(self, *tensors):
            return self.function(*tensors)

    refused = lambda f, x, **settings: Refused(f)
    monkeypatch.setattr(_default, "compile_function", refused)
    compiled = taeda.compile(rows, dynamic=True)
    x = taeda.randn(4, 6)
    assert compiled(x, 3)[1] == rows(x, 3)[1]


def test_deterministic_algorithms_wait_for_kernels() -> None:
    def step(x, w):
        return (x @ w).softmax(-1).log().mean(0) * 1.7183 + w.exp().sum(0).sqrt()

    x = taeda.randn(64, 33)
    w = taeda.randn(33, 65)
    taeda.use_deterministic_algorithms(True)
    try:
        compiled = taeda.compile(step)
        first = compiled(x, w)
    finally:
        taeda.use_deterministic_algorithms(False)
    waited = taeda.compile(step, options=BLOCKING)
    assert taeda.equal(first, waited(x, w))
    assert taeda.equal(first, compiled(x, w))


def test_a_recorded_write_behind_a_detach_requires_grad():
    def program(x):
        a = taeda.cat([x, x])
        b = a.detach()
        b.mul_(a)
        return a, b, b + 1

    x = taeda.rand(3, requires_grad=True)
    found = taeda.compile(program, dynamic=True, options={"blocking": True})(x)
    assert all(t.requires_grad for t in found)
    want = taeda.autograd.grad(sum(t.sum() for t in program(x)), x)
    taeda.testing.assert_close(
        taeda.autograd.grad(sum(t.sum() for t in found), x), want
    )


@pytest.mark.parametrize("dynamic", [None, True])
def test_expanded_inputs_may_be_filled(dynamic):
    def program(x):
        wide = x[:, None].expand(3, 2, 1)
        taeda._dynamo.graph_break()
        wide.zero_()
        return x + 1

    x = taeda.ones(2)
    assert taeda.compile(program, dynamic=dynamic)(x).tolist() == [1.0, 1.0]
    assert x.tolist() == [0.0, 0.0]
