"""utils.checkpoint: the same gradients from fewer kept values."""

from __future__ import annotations

import gc
import math
import weakref
from contextlib import nullcontext

import pytest
import taeda
from taeda.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)
from tolerance import rounding


def network():
    taeda.manual_seed(0)
    nn = taeda.nn
    layers = nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 8), nn.ReLU()
    return nn.Sequential(*layers)


def results(call) -> list:
    net = network()
    x = taeda.ones(4, 8).mul_(0.3).requires_grad_()
    taeda.manual_seed(1)
    out = call(net, x)
    (out**2).sum().backward()
    after = taeda.rand(1).tolist()
    grads = [p.grad.tolist() for p in [*net.parameters(), x]]
    return [out.tolist(), after, grads]


WAYS = {
    "without reentrance": lambda net, x: checkpoint(net, x, use_reentrant=False),
    "with reentrance": lambda net, x: checkpoint(net, x, use_reentrant=True),
    "to the end": lambda net, x: checkpoint(
        net, x, use_reentrant=False, early_stop=False
    ),
    "nested": lambda net, x: checkpoint(
        lambda z: checkpoint(
            net[2:],
            checkpoint(net[:2], z, use_reentrant=False),
            use_reentrant=False,
        ),
        x,
        use_reentrant=False,
    ),
    "sequence": lambda net, x: checkpoint_sequential(net, 3, x, use_reentrant=False),
    "reentrant sequence": lambda net, x: checkpoint_sequential(
        net, 2, x, use_reentrant=True
    ),
    "keywords": lambda net, x: checkpoint(
        lambda *, value: net(value), use_reentrant=False, value=x
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_same_gradients(name) -> None:
    assert results(WAYS[name]) == results(lambda net, x: net(x))


def test_inner_values_are_not_kept() -> None:
    seen = []

    def block(x):
        inner = x.exp()
        seen.append(weakref.ref(inner))
        return inner.sin()

    x = taeda.ones(3, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False)
    gc.collect()
    assert seen[0]() is None
    out.sum().backward()
    assert len(seen) == 2
    want = math.exp(1) * math.cos(math.exp(1))
    assert x.grad.tolist() == pytest.approx([want] * 3, rel=rounding("float32", 4))


def test_backward_twice_and_second_derivatives() -> None:
    def block(z):
        return (z.sin() * z).sum()

    x = taeda.tensor([0.3, 1.2], dtype=taeda.float64, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False)
    (first,) = taeda.autograd.grad(out, x, retain_graph=True)
    (again,) = taeda.autograd.grad(out, x, create_graph=True)
    assert first.tolist() == again.tolist()
    (second,) = taeda.autograd.grad(again.sum(), x)
    (plain,) = taeda.autograd.grad(block(x), x, create_graph=True)
    (want,) = taeda.autograd.grad(plain.sum(), x)
    assert second.tolist() == pytest.approx(want.tolist(), rel=rounding("float64", 4))


def test_without_gradients_nothing_is_recorded() -> None:
    with taeda.no_grad():
        x = taeda.ones(2)
        assert checkpoint(lambda z: z * 2, x, use_reentrant=False).tolist() == [2, 2]


@pytest.mark.parametrize("debug", [False, True])
def test_a_function_that_changes_is_noticed(debug) -> None:
    calls = []

    def block(z):
        calls.append(1)
        return (z * z).exp() if len(calls) == 1 else z * 2

    x = taeda.ones(2, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False, debug=debug)
    text = "saved by: .*test_recomputation" if debug else "debug=True"
    with pytest.raises(CheckpointError, match=f"(?s)different number.*{text}"):
        out.sum().backward()


def test_other_shapes_are_noticed() -> None:
    sizes = iter([2, 3])

    def block(z):
        return z[: next(sizes)].exp().sum()

    x = taeda.ones(4, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="(?s)different metadata.*shape"):
        out.backward()


def test_an_input_changed_in_place_is_noticed() -> None:
    x = taeda.ones(2, requires_grad=True)
    y = x * 2
    out = checkpoint(lambda z: z.exp(), y, use_reentrant=False)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified|changed"):
        out.sum().backward()


def test_contexts_surround_both_calls() -> None:
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def note(text):
        seen.append(text)
        yield

    x = taeda.ones(2, requires_grad=True)
    out = checkpoint(
        lambda z: z.exp(),
        x,
        use_reentrant=False,
        context_fn=lambda: (note("first"), note("second")),
    )
    assert seen == ["first"]
    out.sum().backward()
    assert seen == ["first", "second"]


def test_refused_arguments() -> None:
    x = taeda.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(lambda z: z, x, use_reentrant=True, other=1)
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(lambda z: z, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda z: z, x, use_reentrant=False, determinism_check="x")
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(lambda z: z * 1, x)
    with pytest.warns(UserWarning, match="requires_grad"):
        checkpoint(lambda z: z * 1, taeda.ones(1), use_reentrant=True)


def test_an_error_inside_comes_out() -> None:
    def fail(z):
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        checkpoint(fail, taeda.ones(1, requires_grad=True), use_reentrant=False)


# A block with reentrance adds to all its leaves, whatever is asked for ----------------

PARTIAL = {
    "grad": lambda m, y, x: m.autograd.grad(y, x),
    "backward with inputs": lambda m, y, x: y.backward(inputs=[x]),
    "autograd.backward with inputs": lambda m, y, x: m.autograd.backward(y, inputs=x),
}


@pytest.mark.parametrize("ask", PARTIAL.values(), ids=PARTIAL)
def test_reentrance_refuses_partial_passes(ask) -> None:
    import torch

    messages = []
    for m in (taeda, torch):
        x = m.ones(3, requires_grad=True)
        y = sub_module(m).checkpoint(lambda t: t * t, x, use_reentrant=True).sum()
        with pytest.raises(RuntimeError) as caught:
            ask(m, y, x)
        messages.append(str(caught.value)[:99])
        assert x.grad is None
    assert messages[0] == messages[1]
    x = taeda.ones(3, requires_grad=True)
    y = checkpoint(lambda t: t * t, x, use_reentrant=False).sum()
    (got,) = taeda.autograd.grad(y, x)
    assert got.tolist() == [2, 2, 2]


def sub_module(m):
    import importlib

    return importlib.import_module(f"{m.__name__}.utils.checkpoint")


def test_a_partial_pass_in_a_hook_spoils_only_itself() -> None:
    x = taeda.ones(3, requires_grad=True)
    y = checkpoint(lambda t: t * t, x, use_reentrant=True)
    other = taeda.ones(1, requires_grad=True)
    seen = []

    def hook(grad):
        with taeda.enable_grad():
            seen.extend(taeda.autograd.grad(other * 3, other))

    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and seen[0].item() == 3


class Twice(taeda.autograd.Function):
    """Reads what it saved more than once."""

    @staticmethod
    def forward(ctx, x, fixed):
        ctx.save_for_backward(x * 2, fixed)
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        Twice.seen = ctx.saved_tensors
        with pytest.raises(CheckpointError, match="was already unpacked once"):
            ctx.saved_tensors  # noqa: B018
        return grad, None


def test_saved_values_are_read_once_in_a_pass() -> None:
    x, fixed = taeda.ones(1, requires_grad=True), taeda.ones(1)
    out = checkpoint(Twice.apply, x, fixed, use_reentrant=False)
    for _ in range(2):  # out of a pass each reading computes for itself
        assert out.grad_fn.saved_tensors[0].item() == 2
    out.backward()
    assert Twice.seen[1] is fixed


def test_each_pass_computes_again_and_a_group_once() -> None:
    calls = []

    def func(x):
        calls.append(1)
        y = x.sin().cos()
        return y, y.sin().cos()

    def passes(around) -> None:
        x = taeda.ones(2, requires_grad=True)
        y, z = checkpoint(func, x, use_reentrant=False)
        calls.clear()
        with around:
            (g,) = taeda.autograd.grad(z, y, taeda.ones(2))
            (whole,) = taeda.autograd.grad(y, x, g)
        want = x.detach().clone().requires_grad_()
        func(want)[1].sum().backward()
        assert taeda.allclose(whole, want.grad)

    passes(nullcontext())
    assert len(calls) == 3  # one is the comparison's
    passes(GraphExecGroup())
    assert len(calls) == 2
    x = taeda.ones(2, requires_grad=True)
    out = checkpoint(lambda x: x.sin().cos(), x, use_reentrant=False).sum()
    with GraphExecGroup():
        out.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="two backward calls that overlap"):
            out.backward()
    out.backward()


def test_a_call_that_saves_more_is_noticed() -> None:
    calls = []

    def func(x):
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.sin().exp()

    x = taeda.ones(1, requires_grad=True)
    out = checkpoint(func, x, use_reentrant=False, early_stop=False)
    with pytest.raises(CheckpointError, match="trying to save more tensors during rec"):
        out.backward()


@pytest.mark.parametrize("stop", [True, False])
def test_derivatives_inside_of_blocks(stop) -> None:
    def plain(x):
        return x.sin().exp().sin()

    def block(function):
        return lambda x: checkpoint(function, x, use_reentrant=False)

    def slope(function):
        def call(x):
            with taeda.enable_grad():
                return taeda.autograd.grad(function(x), x, create_graph=True)[0]

        return call

    x = taeda.tensor(0.3, dtype=taeda.float64, requires_grad=True)
    with set_checkpoint_early_stop(stop):
        expected = slope(slope(plain))(x)
        for nested in (
            slope(block(slope(plain))),
            block(slope(slope(block(plain)))),
            slope(block(slope(block(plain)))),
        ):
            assert taeda.allclose(nested(x), expected, rtol=1e-12)
