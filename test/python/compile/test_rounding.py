"""Gradients of 16 bits are rounded where eager kernels do it: once, at their end."""

from __future__ import annotations

import pytest
import taeda
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
