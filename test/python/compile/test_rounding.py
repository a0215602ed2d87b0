"""Gradients of 16 bits are rounded where eager kernels do it: once, at their end."""

from __future__ import annotations

import pytest
import taeda
from taeda._dynamo import compiled_autograd
from taeda.compiler import config
from taeda.nn import functional as F

FUNCTIONS = [F.hardswish, F.mish, F.softplus, F.silu, taeda.sigmoid, taeda.atan]
FUNCTIONS += [taeda.tanh, taeda.rsqrt, taeda.asinh, taeda.erf, F.logsigmoid]


def gradient(function, x, second: bool = False):
    x = x.clone().requires_grad_()
    (found,) = taeda.autograd.grad(function(x).sum(), x, create_graph=second)
    return found.detach()


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16], ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_eager(function, dtype) -> None:
    x = (taeda.linspace(-4, 4, 161) + 0.013).to(dtype)
    wanted = gradient(function, x)
    # One by one, on wrappers of a trace, and under a second derivative.
    traced = taeda.compile(lambda x: function(x), backend="aot_eager", fullgraph=True)
    assert taeda.equal(gradient(traced, x).nan_to_num(), wanted.nan_to_num())
    assert taeda.equal(gradient(function, x, True).nan_to_num(), wanted.nan_to_num())


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_integers_and_comparisons_are_made_of_rounded_numbers(dtype) -> None:
    def program(a):
        b = a * 0.5 + 3
        return b.to(taeda.int64) * 2, (b > 3) & (b <= 3.5), b.to(taeda.bool) | (b == 3)

    a = taeda.linspace(-2, 2, 1000).to(dtype)
    compiled = taeda.compile(program, fullgraph=True, options={"blocking": True})
    for ours, eager in zip(compiled(a), program(a), strict=True):
        assert ours.equal(eager)


def chain(x):
    a = (x * 0.3 + 1.1).sin() * x - 0.1
    b = taeda.softmax(a.exp() * 1.7, -1)
    c = F.gelu(b * 3.3) + a
    padded = F.pad(c * 1.1, (1, 1), value=0.3) * 1.7
    normed = F.layer_norm(c, c.shape[-1:]) * 1.1
    return a, b, c, (c * 1.3).sum(-1), (c * 0.7).argmax(-1), padded, normed


CASTS = "emulate_precision_casts"


@pytest.mark.parametrize("by_option", [True, False])
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16], ids=str)
def test_casts_are_emulated_where_a_program_asks(dtype, kernel, by_option) -> None:
    x = taeda.randn(32, 100).to(dtype)
    options = {"blocking": kernel, **({CASTS: True} if by_option else {})}
    with config.patch({CASTS: not by_option}):
        compiled = taeda.compile(chain, fullgraph=True, options=options)
        found = compiled(x)
    for ours, eager in zip(found, chain(x), strict=True):
        assert ours.equal(eager)
    other = taeda.compile(chain, fullgraph=True, options={"blocking": True})(x)
    assert not other[2].equal(found[2])


def test_backward_passes_emulate_casts_too() -> None:
    x = taeda.randn(64, 100).bfloat16()

    def function(leaf):
        return ((leaf.sigmoid() * 1.7).sin() * 0.3).float()

    wanted = gradient(function, x)
    options = {"blocking": True, CASTS: True}
    compiled = taeda.compile(function, fullgraph=True, options=options)
    assert gradient(compiled, x).equal(wanted)
    with config.patch({CASTS: True}), compiled_autograd._enable(None, dynamic=False):
        assert gradient(function, x).equal(wanted)


@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16], ids=str)
def test_operands_are_rounded_to_the_common_dtype(dtype) -> None:
    """A number, or a tensor of one, beside a tensor of 16 bits is of its dtype."""

    def program(x, one, counts):
        y = x.abs()
        return y + 1.1, y - 0.3, y > 0.3, y * 0.3, y + one, y * one, y + counts, 1 / y

    x = (taeda.linspace(-4, 4, 161) + 0.013).to(dtype)
    given = (x, taeda.tensor(1.1), taeda.arange(161) + 1000)
    for options in ({"blocking": True}, {}):
        found = taeda.compile(program, fullgraph=True, options=options)(*given)
        for ours, eager in zip(found, program(*given), strict=True):
            assert ours.equal(eager)


def test_tiles_round_a_sum_with_a_product_once() -> None:
    """As the record's loop does, in place of which they run until it is there."""

    def program(x, y, z):
        a = taeda.addcmul(x, y, z, value=0.7)
        return a, taeda.add(x, y, alpha=0.3), taeda.sub(x, z, alpha=0.3), a.abs()

    given = taeda.randn(3, 4000)
    eager = program(*given)
    for options in ({}, {"blocking": True}):
        found = taeda.compile(program, fullgraph=True, options=options)(*given)
        for ours, wanted in zip(found, eager, strict=True):
            assert ours.equal(wanted)
